#!/usr/bin/env python3
"""Summarises a result of the benchmark by pattern and transport: a table, the raw runs and a picture.

    bench/groups.py RESULTS.JSON [--data FILE] [--svg FILE] [--page FILE]

A row has the geometric mean of the ratios of its cells, with a 95 % bootstrap interval, and the worst cell. CPU is the same mean for the
processor time of a message. Above 1 is better than the reference, which is the first library of the result. --data writes every run in a
compact form, --svg draws the means, and --page renews the table of a page and the lines between the two comments `measured`.
"""

import argparse
import json
import math
import random
import statistics

PATTERNS = {"router_router": "ROUTER/ROUTER", "pub_sub": "PUB/SUB", "fan_out": "PUB fan-out", "push_pull": "PUSH/PULL", "req_rep": "REQ/REP"}
CELL = ["pattern", "transport", "size", "api", "processes", "subscribers", "with", "environment"]
ROUNDS = 2000
PROCESSOR = "processor_us"
# If there are more libraries than this beside the reference, the table has only their means.
DETAILED = 2
# Above this load average, other programs have taken much of the time.
QUIET = 3


def key(figure):
    return json.dumps([figure.get(name) for name in CELL])


def size(octets):
    return f"{octets // 1024} KiB" if octets >= 1024 and octets % 1024 == 0 else f"{octets} B"


def cell_title(figure):
    to = f" to {figure['subscribers']}" if figure["subscribers"] > 1 else ""
    return f"{size(figure['size'])}{to}"


def is_smaller_better(metric):
    return metric.endswith("_us")


class Cell:
    """One cell, library and metric beside the reference."""

    def __init__(self, ratio, figures, reference):
        self.title, self.ratio, self.interval = cell_title(ratio), ratio["ratio"], ratio["interval"]
        own = figures[key(ratio), ratio["library"], ratio["metric"]]
        other = figures[key(ratio), reference, ratio["metric"]]
        self.is_inverse = is_smaller_better(ratio["metric"])
        self.own, self.other = (self.compared(figure, ratio.get("only_state")) for figure in (own, other))

    @staticmethod
    def compared(figure, state):
        """Returns the runs that the harness has compared: over inproc, those in one state of the machine."""
        chosen = [sample for sample, at in zip(figure["samples"], figure["states"]) if state in (None, at)]
        return chosen or figure["samples"]

    def drawn(self, random_source):
        """Returns the ratio of the medians of runs drawn with replacement."""
        own, other = (statistics.median(random_source.choices(runs, k=len(runs))) for runs in (self.own, self.other))
        return other / own if self.is_inverse else own / other


def mean(ratios):
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def groups(results):
    """Returns, for each pattern, metric and transport, the cells of each library."""
    reference = results["libraries"][0]["name"]
    # The rate of a round trip says the same as its times.
    ratios = [r for r in results["ratios"] if (r["pattern"], r["metric"]) != ("req_rep", "messages_per_second")]
    figures = {(key(figure), figure["library"], figure["metric"]): figure for figure in results["cells"]}
    found = {}
    for ratio in ratios:
        group = (ratio["pattern"], ratio["metric"], ratio["transport"])
        found.setdefault(group, {}).setdefault(ratio["library"], []).append(Cell(ratio, figures, reference))
    return found


def summary(cells):
    """Returns the mean, its interval, and the worst cell."""
    source = random.Random(1)
    drawn = sorted(mean(cell.drawn(source) for cell in cells) for _ in range(ROUNDS))
    return mean(cell.ratio for cell in cells), drawn[ROUNDS // 40], drawn[-ROUNDS // 40 - 1], min(cells, key=lambda cell: cell.ratio)


def title(pattern, metric):
    name = PATTERNS.get(pattern, pattern)
    return f"{name}, {metric.split('_')[0]}" if is_smaller_better(metric) else name


def table(results, rows):
    others = results["libraries"][1:]
    if len(others) > DETAILED:
        return means(others, rows)
    lines = ["| | | cells |" + "".join(f" {library['title']} | worst cell | CPU |" for library in others), "|---|---|--:|" + "--:|---|--:|" * len(others)]
    for (pattern, metric, transport), libraries in rows.items():
        if metric == PROCESSOR:
            continue
        columns = []
        for library in others:
            middle, low, high, worst = libraries[library["name"]][1]
            processor = rows[pattern, PROCESSOR, transport][library["name"]][1][0]
            columns.append(f"{middle:.2f} ({low:.2f}..{high:.2f}) | {worst.title}: {worst.ratio:.2f} ({worst.interval[0]:.2f}..{worst.interval[1]:.2f}) | {processor:.2f}")
        count = len(libraries[others[0]["name"]][0])
        lines.append(f"| {title(pattern, metric)} | {transport} | {count} | {' | '.join(columns)} |")
    return "\n".join(lines)


def means(others, rows):
    """Returns the means alone, processor time too."""
    lines = ["| | | cells |" + "".join(f" {library['title']} |" for library in others), "|---|---|--:|" + "--:|" * len(others)]
    for (pattern, metric, transport), libraries in rows.items():
        columns = [f"{middle:.2f} ({low:.2f}..{high:.2f})" for middle, low, high, _ in (libraries[library["name"]][1] for library in others)]
        name = f"{PATTERNS.get(pattern, pattern)}, CPU" if metric == PROCESSOR else title(pattern, metric)
        lines.append(f"| {name} | {transport} | {len(libraries[others[0]['name']][0])} | {' | '.join(columns)} |")
    return "\n".join(lines)


def data(results):
    """Returns the raw runs: a line for each cell, library and metric."""
    head = {name: results[name] for name in ("title", "date", "took_seconds", "machine", "libraries")}
    # Other entries are paths of this machine.
    head["versions"] = {name: text for name, text in results["versions"].items() if not text.startswith("/")}
    lines = []
    for figure in results["cells"]:
        cell = f"{figure['pattern']} {figure['transport']} {cell_title(figure)}"
        runs = [float(f"{sample:.4g}") for sample in figure["samples"]]
        lines.append(json.dumps([cell, figure["library"], figure["metric"], runs], separators=(",", ":")))
    return json.dumps(head, indent=1)[:-2] + ',\n "runs": [\n' + ",\n".join(lines) + "\n]}\n"


def picture(results, rows):
    """Returns an SVG: for each group a point and its interval for each library, on a logarithmic axis."""
    others = results["libraries"][1:]
    rows = {group: libraries for group, libraries in rows.items() if group[1] != PROCESSOR}
    colours = ["#2a6fbb", "#c8651b", "#3a8f4c", "#8a4fa8", "#b03040", "#7a7a20", "#30808a"]
    names = {library["name"]: colour for library, colour in zip(others, colours)}
    ends = [value for libraries in rows.values() for _, figures in libraries.values() for value in figures[:3]]
    low, high = min([0.8, *ends]) * 0.97, max([1.25, *ends]) * 1.03
    left, width, step = 190, 520, 10 + 8 * len(others)
    height = 62 + step * len(rows)

    def x(ratio):
        return left + width * math.log(ratio / low) / math.log(high / low)

    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {height}" font-family="sans-serif" font-size="12">']
    text.append(f'<rect width="{left + width + 20}" height="{height}" fill="#ffffff"/>')
    for number, library in enumerate(others):
        at = left + number * (width // len(others))
        text.append(f'<circle cx="{at + 5}" cy="14" r="4" fill="{names[library["name"]]}"/><text x="{at + 15}" y="18">{library["title"]}</text>')
    # On a long axis, near marks would overlap.
    near = [0.7, 1.5] if high > 4 * low else [0.7, 0.8, 0.9, 1.1, 1.25, 1.5]
    for mark in [0.25, 0.5, *near, 1, 2, 4]:
        if low <= mark <= high:
            colour = "#444444" if mark == 1 else "#dddddd"
            text.append(f'<line x1="{x(mark):.1f}" y1="30" x2="{x(mark):.1f}" y2="{height - 24}" stroke="{colour}"/>')
            text.append(f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="middle">{mark:g}</text>')
    for row, ((pattern, metric, transport), libraries) in enumerate(rows.items()):
        y = 44 + row * step
        between = 4 * (len(others) - 1)
        text.append(f'<text x="{left - 10}" y="{y + between}" text-anchor="end">{title(pattern, metric)} {transport}</text>')
        for number, library in enumerate(others):
            middle, from_, to, _ = libraries[library["name"]][1]
            at, colour = y - 4 + number * 8, names[library["name"]]
            text.append(f'<line x1="{x(from_):.1f}" y1="{at}" x2="{x(to):.1f}" y2="{at}" stroke="{colour}" stroke-width="2"/>')
            text.append(f'<circle cx="{x(middle):.1f}" cy="{at}" r="4" fill="{colour}"/>')
    return "\n".join([*text, "</svg>", ""])


def measured(results, rows):
    """Returns the day, the machine and the groups that are worse beyond doubt."""
    machine, library_names = results["machine"], {library["name"]: library["title"] for library in results["libraries"][1:]}
    pairs = sorted({len(ratio["pairs"]) for ratio in results["ratios"]})
    number = f"{pairs[0]}" if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
    worse = []
    for (pattern, metric, transport), libraries in rows.items():
        for name, (_, (middle, low, high, _)) in libraries.items():
            if high < 1:
                what = "processor time of " + PATTERNS.get(pattern, pattern) if metric == PROCESSOR else title(pattern, metric)
                worse.append(f"- {library_names[name]}, {what} {transport}: {middle:.2f} ({low:.2f}..{high:.2f})")
    text = f"Measured on {results['date'][:10]} on {machine['cores']} cores of {machine['cpu']}, {machine['kernel']}, {number} interleaved runs a cell.\n"
    if machine["load"] > QUIET:
        text += f"\n**A draft**: other programs used the cores during this run (load average {machine['load']:.0f}), so single runs differ by factors.\n"
    if worse:
        return text + "\nWorse, with the whole interval below 1:\n\n" + "\n".join(worse) + "\n"
    return text + "\nNo group has its whole interval below 1.\n"


def renew(page, results, rows):
    """Replaces the table of a page, and the text between its comments."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    mark = "<!-- measured -->\n"
    before, _, after = text.split(mark)
    lines = after.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.startswith("| | | cells |"))
    end = next(number for number, line in enumerate(lines) if number > begin and not line.startswith("|"))
    lines[begin:end] = [table(results, rows)]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + mark + measured(results, rows) + mark + "\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--data")
    parser.add_argument("--svg")
    parser.add_argument("--page")
    arguments = parser.parse_args()
    with open(arguments.results, encoding="utf-8") as file:
        results = json.load(file)
    for problem in results["problems"]:
        print(f"problem: {problem}")
    rows = {
        group: {library: (cells, summary(cells)) for library, cells in libraries.items()} for group, libraries in groups(results).items()
    }
    print(table(results, rows))
    for name, made in ((arguments.data, data), (arguments.svg, lambda results: picture(results, rows))):
        if name:
            with open(name, "w", encoding="utf-8") as file:
                file.write(made(results))
    if arguments.page:
        renew(arguments.page, results, rows)


main()
