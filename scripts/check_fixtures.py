#!/usr/bin/env python3
"""Runs every GGUF under engine-core/tests/data through llama.cpp and compares its logits with the expected ones.

This tells whether the GGUF files mean to an independent reader what the fixtures say they mean. The KV cache is f32
and flash attention off, so that files of F32 weights agree to rounding (about 1e-12; 1e-7 for Gemma, whose GELU
llama.cpp takes from a table in f16). Before a quantised product it rounds activations to 8 bits, hence the wider
bound there. The vocabularies' ids are compared too, for information: qwen2 differs where a
text is not composed (NFC), tekken and deepseek-llm where llama.cpp's regular expressions stand in for others.
"""

import argparse
import json
from pathlib import Path

from safetensors.numpy import load_file

from fixtures.reference import nmse
from llamacpp import F32, NO_FLASH_ATTENTION, Model
from make_fixtures import DATA

BOUND_F32 = 5e-7
BOUND_QUANTISED = 5e-2


def check(path: Path) -> bool:
    """Compares one file; prints a line and tells whether it is within its bound."""
    prefix = path.name.removesuffix(".gguf")
    sibling = path.with_name(f"{prefix}.expected.safetensors")
    expected = load_file(sibling if sibling.exists() else path.with_name("expected.safetensors"))
    tokens, want = expected["tokens"], expected["logits"]
    with Model(path, n_ctx=512, n_threads=1, kv_type=F32, flash_attention=NO_FLASH_ATTENTION) as model:
        model.decode(tokens, all_logits=True)
        error = nmse(model.logits(len(tokens)), want)
    bound = BOUND_QUANTISED if "quant" in path.parts else BOUND_F32
    print(f"{'ok  ' if error <= bound else 'FAIL'} {path.relative_to(path.parents[1])}: NMSE {error:.1e}")
    return error <= bound


def compare_ids(path: Path) -> None:
    """Prints on how many texts llama.cpp's ids of a tiny vocabulary differ from the expected ones."""
    texts = json.loads(path.with_name("texts.json").read_text(encoding="utf-8"))
    expected = json.loads(path.with_name(f"{path.stem}.ids.json").read_text(encoding="utf-8"))
    with Model(path, vocab_only=True) as model:
        for kind, parse_special in (("plain", False), ("control", True)):
            got = [model.tokenize(text, parse_special=parse_special) for text in texts[kind]]
            differing = sum(a != b for a, b in zip(got, expected[kind], strict=True))
            print(f"     {path.relative_to(path.parents[1])}: {differing} of {len(got)} {kind} texts differ")


def main() -> int:
    """Checks all files; the exit code tells whether all were within their bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of fixtures (default: %(default)s)")
    args = parser.parse_args()
    files = [p for p in sorted(args.data.rglob("*.gguf")) if "-of-" not in p.name or "-00001-of-" in p.name]
    results = [check(path) for path in files if path.parent.name != "tokenizers"]
    for path in files:
        if path.parent.name == "tokenizers":
            compare_ids(path)
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
