#!/usr/bin/env python3
"""llama.cpp's speed on a GGUF file, to compare Baton's with: prefill and decode rates in tokens per second.

pp512, pp64  a prompt of that many tokens from an empty cache, in one pass
tg64         64 tokens one by one from an empty cache
load         seconds to open the file and make the context

Each round measures all of them once, after one round that does not count. The file is memory-mapped, KV is f16, and
everything else is llama.cpp's default. A comparison needs both engines in one run: `--alternate` names a command to
run after each round (Baton's own measurement); what it prints is kept beside the round's figures.
"""

import argparse
import json
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from llamacpp import F16, Model

N_CTX, N_UBATCH = 1024, 512


def seconds(work: Callable[[], None]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def prefill(model: Model, tokens: np.ndarray) -> None:
    """The whole prompt in one pass, its last logits included."""
    model.decode(tokens)
    model.synchronize()


def generate(model: Model, tokens: np.ndarray) -> None:
    """One pass per token."""
    for position, token in enumerate(tokens):
        model.decode([token], position)
        model.synchronize()


def rates(model: Model, rng: np.random.Generator) -> dict[str, float]:
    """Tokens per second of each test, once."""
    found = {}
    for name, n_tokens, work in (("pp512", 512, prefill), ("pp64", 64, prefill), ("tg64", 64, generate)):
        tokens = rng.integers(0, model.n_vocab, n_tokens)
        model.clear()
        found[name] = n_tokens / seconds(lambda tokens=tokens, work=work: work(model, tokens))
    return found


def alternate(command: str) -> Any:
    """What the other engine's command prints, parsed if it is JSON."""
    output = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    try:
        return json.loads(output)
    except json.JSONDecodeError:
        return output


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All rounds, and the median, smallest and largest of each rate."""
    rng, rounds, others = np.random.default_rng(0), [], []
    start = time.perf_counter()
    with Model(args.model, n_ctx=N_CTX, n_ubatch=N_UBATCH, n_threads=args.threads, kv_type=F16) as model:
        load = time.perf_counter() - start
        rates(model, rng)
        for _ in range(args.rounds):
            rounds.append(rates(model, rng))
            if args.alternate:
                others.append(alternate(args.alternate))
    result = {name: spread([found[name] for found in rounds]) for name in rounds[0]}
    return result | {"load_seconds": load} | ({"alternate": others} if others else {})


def spread(values: list[float]) -> dict[str, float]:
    """Median, smallest and largest, to a hundredth."""
    return {k: round(f(values), 2) for k, f in (("median", statistics.median), ("min", min), ("max", max))}


def main() -> None:
    """Parses the command line and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--alternate", help="shell command to run after each round")
    args = parser.parse_args()
    features = llama_cpp.llama_print_system_info().decode()
    about = {"engine": f"llama.cpp of llama-cpp-python {llama_cpp.__version__}", "features": features}
    about |= {"machine": platform.machine(), "threads": args.threads, "rounds": args.rounds}
    print(json.dumps(about | measure(args), indent=2))


if __name__ == "__main__":
    main()
