#!/usr/bin/env python3
"""Quality of Baton and of llama.cpp on one GGUF file: perplexity, and KL divergence from float32 arithmetic.

The text is cut as llama.cpp's perplexity tool does it: chunks of n_ctx tokens, each run by itself, of which the second
half is scored (n_ctx - 1 - n_ctx / 2 positions); if the model wants a begin token, it replaces the first of each chunk.
The float32 reference is transformers' model of the same file, its weights decoded to float32.

  text       writes the default text: language topics of Python's own help, whole paragraphs, about 40 KB
  reference  writes the reference's logits, little-endian f32 [n_scored, n_vocab] (0.8 GB for the default model)
  measure    prints perplexity and mean KL divergence of each engine as JSON

`measure` takes the reference from `--reference` and, given `--baton`, runs `baton perplexity` too.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from llamacpp import Model

TEXT_BYTES = 40_000


def write_text(out: Path) -> None:
    """Paragraphs of Python's help, topics in order of name, without markup lines or a final line break."""
    paragraphs = []
    for name in sorted(topics):
        for paragraph in topics[name].split("\n\n"):
            joined = " ".join(paragraph.split())
            if joined.endswith((".", ":")) and len(joined) > 80:
                paragraphs.append(joined)
        if sum(map(len, paragraphs)) > TEXT_BYTES:
            break
    out.write_text("\n\n".join(paragraphs), encoding="utf-8")


def chunks(model: Model, text: str, n_ctx: int) -> list[np.ndarray]:
    """The text's token ids in chunks of n_ctx; what is left over is dropped."""
    tokens = np.array(model.tokenize(text, add_special=True), dtype=np.int32)
    cut = [tokens[i : i + n_ctx].copy() for i in range(0, len(tokens) - n_ctx + 1, n_ctx)]
    if not cut:
        raise SystemExit(f"the text has {len(tokens)} tokens, fewer than the {n_ctx} of a chunk")
    if model.adds_bos:
        for chunk in cut:
            chunk[0] = model.bos
    return cut


def scored(n_ctx: int) -> slice:
    """Positions of a chunk whose next token counts."""
    return slice(n_ctx // 2, n_ctx - 1)


def reference_logits(model_path: Path, tokens: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Scored logits of each chunk in float32, [n_scored, n_vocab]."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(
        model_path.parent, gguf_file=model_path.name, dtype=torch.float32, local_files_only=True
    ).eval()
    for chunk in tokens:
        with torch.no_grad():
            yield model(torch.from_numpy(chunk).long()[None]).logits[0, scored(len(chunk))].numpy()


def llama_cpp_logits(model: Model, tokens: list[np.ndarray]) -> Iterator[np.ndarray]:
    """The same by llama.cpp."""
    for chunk in tokens:
        model.clear()
        model.decode(chunk, all_logits=True)
        yield model.logits(len(chunk))[scored(len(chunk))]


def file_logits(path: Path, n_vocab: int, n_ctx: int) -> Iterator[np.ndarray]:
    """The same out of a file of raw logits, chunk by chunk."""
    rows = np.memmap(path, dtype="<f4", mode="r").reshape(-1, n_vocab)
    per_chunk = len(range(n_ctx)[scored(n_ctx)])
    if len(rows) % per_chunk:
        raise SystemExit(f"{path} has {len(rows)} rows, not a multiple of {per_chunk}")
    for start in range(0, len(rows), per_chunk):
        yield rows[start : start + per_chunk]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log probabilities in float64, by row."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def score(tokens: list[np.ndarray], logits: Iterable[np.ndarray], reference: Iterable[np.ndarray]) -> dict[str, Any]:
    """Perplexity of `logits`, and how far their distributions are from the reference's."""
    losses, divergences, same = [], [], []
    for chunk, got, want in zip(tokens, logits, reference, strict=True):
        rows, next_tokens = np.arange(len(got)), chunk[1:][scored(len(chunk))]
        p, q = log_softmax(want), log_softmax(got)
        losses.append(-q[rows, next_tokens])
        divergences.append((np.exp(p) * (p - q)).sum(axis=-1))
        same.append(p.argmax(axis=-1) == q.argmax(axis=-1))
    loss, divergence = np.concatenate(losses), np.concatenate(divergences)
    return {
        "perplexity": float(np.exp(loss.mean())),
        "mean_nll": float(loss.mean()),
        "mean_kl": float(divergence.mean()),
        "kl_standard_error": float(divergence.std() / np.sqrt(len(divergence))),
        "p99_kl": float(np.quantile(divergence, 0.99)),
        "max_kl": float(divergence.max()),
        "same_top_token": float(np.concatenate(same).mean()),
        "n_scored": len(loss),
    }


def run_baton(baton: Path, args: argparse.Namespace, logits: Path) -> dict[str, Any]:
    """Runs `baton perplexity`, which also writes its raw logits, and returns its JSON."""
    command = [str(baton), "perplexity", "--json", "--model", str(args.model), "--ctx", str(args.ctx)]
    command += ["--file", str(args.text), "--logits", str(logits), *args.baton_args.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def write_reference(args: argparse.Namespace) -> None:
    """Writes the reference's scored logits to a file."""
    with Model(args.model, vocab_only=True) as model:
        tokens = chunks(model, args.text.read_text(encoding="utf-8"), args.ctx)
    with args.out.open("wb") as file:
        for rows in reference_logits(args.model, tokens):
            file.write(np.ascontiguousarray(rows, dtype="<f4").tobytes())


def measure(args: argparse.Namespace) -> None:
    """Prints the scores of the reference itself, of llama.cpp and of Baton."""
    text, results = args.text.read_text(encoding="utf-8"), {}
    with Model(args.model, n_ctx=args.ctx, n_threads=args.threads) as model:
        tokens = chunks(model, text, args.ctx)
        reference = lambda: file_logits(args.reference, model.n_vocab, args.ctx)  # noqa: E731
        results["reference"] = score(tokens, reference(), reference())
        results["llama.cpp"] = score(tokens, llama_cpp_logits(model, tokens), reference())
        if args.baton:
            with tempfile.TemporaryDirectory(dir=args.reference.parent) as folder:
                path = Path(folder) / "logits.f32"
                answer = run_baton(args.baton, args, path)
                results["baton"] = score(tokens, file_logits(path, model.n_vocab, args.ctx), reference())
                results["baton"]["own_answer"] = answer
    print(json.dumps(results, indent=2))


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    text = commands.add_parser("text", help="write the default text")
    text.add_argument("--out", type=Path, required=True)
    reference = commands.add_parser("reference", help="write the float32 reference's logits")
    reference.add_argument("--out", type=Path, required=True)
    measuring = commands.add_parser("measure", help="score the engines")
    measuring.add_argument("--reference", type=Path, required=True, help="what `reference` wrote")
    measuring.add_argument("--baton", type=Path, help="the baton binary; left out: llama.cpp only")
    measuring.add_argument("--baton-args", default="", help="more arguments for `baton perplexity`, in one string")
    measuring.add_argument("--threads", type=int, default=2, help="threads of llama.cpp (default: %(default)s)")
    for command in (reference, measuring):
        command.add_argument("--model", type=Path, required=True, help="a GGUF file")
        command.add_argument("--text", type=Path, required=True, help="what to score")
        command.add_argument("--ctx", type=int, default=512, help="tokens in a chunk (default: %(default)s)")
    args = parser.parse_args()
    if args.command == "text":
        write_text(args.out)
    elif args.command == "reference":
        write_reference(args)
    else:
        measure(args)


if __name__ == "__main__":
    main()
