#!/usr/bin/env python3
"""Token ids of thousands of lines of mixed text, by the reference tokenizers and by Baton.

  write    ids by Hugging Face's tokenizers (llama.cpp for kinds it has no rules for here), as JSON lines
           {"text", "ids"}; where llama.cpp gives other ids the line has them too, as "llama_cpp"
  compare  runs `baton tokenize` on the same lines and prints those where the ids differ

`write` also prints how many lines the two references disagree on.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reference.text import lines
from reference.tokenizers_of import hugging_face, llama_cpp

SHOWN = 10


def references(model: Path) -> list[dict[str, Any]]:
    """One record per line of text."""
    first, second = hugging_face(model), llama_cpp(model)
    records = []
    for text in lines():
        other = second(text)
        ids = first(text) if first else other
        records.append({"text": text, "ids": ids} | ({} if ids == other else {"llama_cpp": other}))
    return records


def write(model: Path, out: Path) -> int:
    """Writes the reference ids of all lines."""
    records = references(model)
    with out.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    disputed = [record for record in records if "llama_cpp" in record]
    print(f"{len(records)} lines, the references disagree on {len(disputed)}")
    for record in disputed[:SHOWN]:
        print(f"  {record['text']!r}\n    tokenizers {record['ids']}\n    llama.cpp  {record['llama_cpp']}")
    return 0


def baton_ids(baton: Path, model: Path, text: str) -> list[int] | str:
    """What `baton tokenize` answers, or its error."""
    command = [str(baton), "tokenize", "--json", "--model", str(model), "--", text]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    return json.loads(done.stdout)["ids"] if done.returncode == 0 else done.stderr.strip()


def compare(model: Path, reference: Path, baton: Path) -> int:
    """Prints the lines where Baton's ids are not the reference's; the exit code tells whether there were any."""
    records = [json.loads(line) for line in reference.read_text(encoding="utf-8").split("\n") if line]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda record: baton_ids(baton, model, record["text"]), records))
    wrong = [(r, a) for r, a in zip(records, answers, strict=True) if a != r["ids"]]
    for record, answer in wrong[:SHOWN]:
        print(f"{record['text']!r}\n  reference {record['ids']}\n  baton     {answer}", file=sys.stderr)
        if "llama_cpp" in record:
            print(f"  llama.cpp {record['llama_cpp']}", file=sys.stderr)
    undisputed = [record for record, _ in wrong if "llama_cpp" not in record]
    print(f"{len(records)} lines, {len(wrong)} differ ({len(undisputed)} of them where both references agree)")
    return 1 if wrong else 0


def main() -> int:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write the reference ids")
    writing.add_argument("--model", type=Path, required=True, help="a GGUF file; its vocabulary is enough")
    writing.add_argument("--out", type=Path, required=True, help="the JSON lines to write")
    comparing = commands.add_parser("compare", help="compare Baton's ids with them")
    comparing.add_argument("--model", type=Path, required=True, help="the same GGUF file")
    comparing.add_argument("--reference", type=Path, required=True, help="what `write` wrote")
    comparing.add_argument("--baton", type=Path, required=True, help="the baton binary")
    args = parser.parse_args()
    if args.command == "write":
        return write(args.model, args.out)
    return compare(args.model, args.reference, args.baton)


if __name__ == "__main__":
    raise SystemExit(main())
