#!/usr/bin/env python3
"""Draws part of a trace that `baton run --trace` wrote: measured lanes above predicted ones, as SVG.

    python scripts/draw_trace.py TRACE.json FROM_PASS N_PASSES > trace.svg
"""

import json
import sys
from html import escape

LANES = ["CPU", "GPU", "copies", "hand-offs"]
COLOURS = ["#2a9d8f", "#4c78a8", "#e9a23b", "#c44e52"]
WIDTH, LEFT, LANE, GAP = 960, 110, 18, 6
STYLE = (
    "text{font:12px sans-serif;fill:#333}.back{fill:#fff}.lane{fill:#f1f1f1}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.back{fill:#1b1b1b}.lane{fill:#2b2b2b}}"
)


def main() -> None:
    """Draws the passes that the command line names."""
    path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    passes = [event for event in events if event["pid"] == 1 and event["tid"] == 0][first : first + count]
    start, end = passes[0]["ts"], passes[-1]["ts"] + passes[-1]["dur"]
    scale = (WIDTH - LEFT - 10) / (end - start)
    height = 2 * (len(LANES) * (LANE + GAP) + 30) + 24
    title = f"{count} passes of {passes[0]['name']}, {(end - start) / 1e3:.1f} ms: measured above, predicted below"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        f'<text x="8" y="18">{escape(title)}</text>',
    ]
    top = 30
    for process, name in [(1, "measured"), (2, "predicted")]:
        out.append(f'<text x="8" y="{top + 12}" font-weight="bold">{name}</text>')
        top += 18
        for lane, label in enumerate(LANES, start=1):
            out.append(f'<text x="8" y="{top + 13}">{label}</text>')
            out.append(f'<rect class="lane" x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 10}" height="{LANE}"/>')
            for event in events:
                if event["pid"] != process or event["tid"] != lane:
                    continue
                left, right = max(event["ts"], start), min(event["ts"] + event["dur"], end)
                if right <= left:
                    continue
                x, width = LEFT + (left - start) * scale, max((right - left) * scale, 0.4)
                out.append(
                    f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{LANE}" fill="{COLOURS[lane - 1]}"/>'
                )
            top += LANE + GAP
        top += 12
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
