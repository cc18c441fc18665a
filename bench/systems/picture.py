#!/usr/bin/env python3
"""Draws the systems of other people on libzmq and on Tautline, from the tables of their pages: bench/systems/picture.py

Reads docs/results/systems/*.md and writes docs/results/plots/systems.svg. A row names a page, the beginning of a line of its table, and the
columns of both libraries, so a new measurement of a page changes the picture.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2] / "docs/results"
# Title, page, and for libzmq and Tautline the beginning of the line and the column of the figure.
LESS = [
    ("Jupyter: lines lost of 20,000", "jupyter", ("lines lost", 1), ("lines lost", 2)),
    ("FFmpeg: frames lost of 180, fast subscriber", "ffmpeg", ("intra, 1,316 B | libzmq", 4), ("intra, 1,316 B | Tautline for all", 4)),
    ("FFmpeg: frames lost of 180, slow subscriber", "ffmpeg", ("intra, 1,316 B | libzmq", 2), ("intra, 1,316 B | Tautline for all", 2)),
    ("vLLM: time to the first token, ms", "vllm-engine", ("time to the first token", 1), ("time to the first token", 2)),
    ("Salt: median burst, s", "salt", ("libzmq", 2), ("Tautline, the library", 2)),
]
MORE = [
    ("karabo-bridge, ipc: GB/s", "detector", ("ipc | untouched | libzmq", 3), ("ipc | untouched | Tautline, the library |", 3)),
    ("karabo-bridge, tcp: GB/s", "detector", ("tcp | untouched | libzmq", 3), ("tcp | untouched | Tautline, the library |", 3)),
    ("vLLM: tokens a second", "vllm-engine", ("tokens a second", 1), ("tokens a second", 2)),
]
COLOURS = {"libzmq": "#8a8f98", "Tautline": "#2a6fbb"}
LEFT, WIDTH, BAR = 290, 420, 11


def figure(page, beginning, column):
    """Returns the text and the value of a cell of a page's table."""
    text = (ROOT / f"systems/{page}.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith(f"| {beginning}"))
    cell = line.strip("|").split(" | ")[column].strip()
    shown = re.match(r"[\d,.]+", cell)[0].rstrip(",")
    return shown, float(shown.replace(",", ""))


def main():
    y = 46
    lines = []

    def text(x, at, content, anchor="start", weight="normal"):
        lines.append(f'<text x="{x:.0f}" y="{at:.0f}" text-anchor="{anchor}" font-weight="{weight}">{content}</text>')

    for title, rows in (("Less is better", LESS), ("More is better", MORE)):
        text(12, y, title, weight="bold")
        y += 10
        for name, page, *cells in rows:
            values = [figure(page, *cell) for cell in cells]
            most = max(value for _, value in values) or 1
            text(LEFT - 10, y + BAR + 4, name, "end")
            for number, (library, (shown, value)) in enumerate(zip(COLOURS, values)):
                top = y + number * (BAR + 1)
                length = WIDTH * value / most
                lines.append(f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[library]}"/>')
                text(LEFT + length + 5, top + BAR - 2, shown)
            y += 2 * BAR + 10
        y += 22
    for number, (library, colour) in enumerate(COLOURS.items()):
        lines.append(f'<rect x="{LEFT + number * 90}" y="12" width="{BAR}" height="{BAR}" fill="{colour}"/>')
        text(LEFT + number * 90 + BAR + 5, 22, library)
    size = f"{LEFT + WIDTH + 70} {y - 20}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" font-size="12">'
    picture = "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *lines, "</svg>", ""])
    (ROOT / "plots/systems.svg").write_text(picture, encoding="utf-8")


main()
