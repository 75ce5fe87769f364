#!/usr/bin/env python3
"""Makes the tiny random checkpoints and their reference logits that Baton's tests compare against.

Everything is seeded: the same pinned packages give the same bytes. Run with no arguments to remake all of
engine-core/tests/data, or name what to make. `check_fixtures.py` compares the result with llama.cpp.
"""

import argparse
from functools import partial
from pathlib import Path

from fixtures.chats import write_chats
from fixtures.families import FAMILIES, Family
from fixtures.folder import write_folder
from fixtures.gguf_file import gguf_tensors, write_gguf
from fixtures.quant import TYPES, make_dequant, make_quant_model
from fixtures.reference import (
    MATTERS,
    ROUTER_MARGIN,
    load,
    logits,
    nmse,
    prompt,
    router_margin,
    write_expected,
)
from fixtures.vocabularies import make_vocabularies
from fixtures.weights import random_weights

DATA = Path(__file__).resolve().parent.parent / "engine-core" / "tests" / "data"


def make_family(family: Family, data: Path) -> None:
    """The family's folder, GGUF and expected logits under `data`/NAME."""
    home = data / family.name
    weights = random_weights(family)
    write_folder(family, weights, home / "hf")
    write_gguf(family, gguf_tensors(family, weights), home / "model.gguf")
    tokens = prompt(family)
    model = load(home / "hf")
    expected = logits(model, tokens)
    write_expected(tokens, expected, home / "expected.safetensors")
    check_features(family, home / "hf", tokens, expected)
    if "num_experts" in family.config:
        margin = router_margin(model, tokens, family.config["num_experts_per_tok"])
        if margin < ROUTER_MARGIN:
            raise SystemExit(f"{family.name}: router margin {margin:.1e}, choose another seed")
    print(f"{family.name}: logits with standard deviation {expected.std():.2f}")


def check_features(family: Family, folder: Path, tokens, expected) -> None:
    """Stops when a feature that the fixture is there for does not change the logits."""
    for override in family.must_matter:
        change = nmse(logits(load(folder, **override), tokens), expected)
        print(f"{family.name}: {override} changes the logits by NMSE {change:.1e}")
        if change < MATTERS:
            raise SystemExit(f"{family.name}: {override} hardly matters")


def make_quant(data: Path) -> None:
    """A model per block type, and blocks with their values, under `data`/quant."""
    folder = data / "quant"
    for block_type in TYPES:
        make_quant_model(block_type, folder)
    make_dequant(folder / "dequant.safetensors")


def make_tokenizers(data: Path) -> None:
    """Tiny vocabularies of every tokenizer kind and their ids, under `data`/tokenizers."""
    make_vocabularies(data / "tokenizers")


def make_chat(data: Path) -> None:
    """Chat templates and what they render to, as `data`/chat.json."""
    write_chats(data / "chat.json")


def main() -> None:
    """Parses the command line and makes what it names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    makers = {family.name: partial(make_family, family) for family in FAMILIES}
    makers |= {"quant": make_quant, "tokenizers": make_tokenizers, "chat": make_chat}
    parser.add_argument("what", nargs="*", help=f"what to make, of {', '.join(makers)}; all when left out")
    parser.add_argument("--out", type=Path, default=DATA, help="where to put it (default: %(default)s)")
    args = parser.parse_args()
    for name in args.what:
        if name not in makers:
            parser.error(f"no fixture is named {name}")
    for name in args.what or makers:
        makers[name](args.out)


if __name__ == "__main__":
    main()
