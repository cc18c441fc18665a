#!/usr/bin/env python3
"""Writes docs/results/published.md: the figures of published reports beside ours for the same cells.

    bench/published.py [FOLDER]

FOLDER has the results of the scenario `published`, target/bench/published by default. The figures of the reports are in published.toml;
those of bindings, monitors and build profiles come from docs/results.
"""

import json
import math
import pathlib
import re
import statistics
import sys
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/bench/published"
PATTERNS = {
    "router_router": "ROUTER/ROUTER", "pub_sub": "PUB/SUB", "fan_out": "PUB", "push_pull": "PUSH/PULL", "req_rep": "REQ/REP",
    "batches": "DEALER/ROUTER", "filter": "PUB/SUB by topic",
}
LANGUAGES = {"cpp": "C++", "dotnet": ".NET", "node-zeromq": "Node.js"}
INTRODUCTION = """\
# Published figures beside ours

For readers of the published reports on ServerLink, Monocoque and bindings of ZeroMQ. This page has each figure of these reports beside ours for
the same cell, and the command that repeats ours.

*There* is the machine of the report, *here* is ours. Machines differ, so a figure of one machine says little about a figure of another. Ratios
beside libzmq on the same machine say more. A figure of Tautline is **bold** if it is worse than the report's.
"""
# Above this load average, other programs have taken much of the time.
QUIET = 3


def size(octets):
    return f"{octets // 1024} KiB" if octets >= 1024 and octets % 1024 == 0 else f"{octets} B"


def value(number, is_time):
    if number is None:
        return "–"
    if is_time:
        return f"{number:.3g} µs"
    for limit, unit in ((1e6, "M/s"), (1e3, "K/s")):
        if number >= limit:
            return f"{number / limit:,.3g} {unit}" if number < 1000 * limit else f"{number / limit:,.0f} {unit}"
    return f"{number:.0f}/s"


def times(number):
    return "–" if number is None else f"{number:.2f}"


def key(cell):
    return json.dumps([cell["pattern"], cell["transport"], cell["size"], cell.get("subscribers", 1), cell.get("with", {}), cell["metric"]])


def wrapped(text):
    """Wraps a paragraph, but no code in it."""
    joined = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    return textwrap.fill(joined, 155, break_long_words=False, break_on_hyphens=False).replace("\0", " ") + "\n"


def listed(lines):
    """Returns a list of each line once."""
    return [f"- {line}" for line in dict.fromkeys(lines)] + [""]


class Measured:
    """One result of the harness."""

    def __init__(self, path):
        self.results = json.loads(path.read_text(encoding="utf-8"))
        self.figures = {(key(figure), figure["library"]): figure for figure in self.results["cells"]}
        self.ratios = {(key(ratio), ratio["library"]): ratio for ratio in self.results["ratios"]}

    def median(self, row, library):
        figure = self.figures.get((key(row), library))
        is_sound = figure and figure["runs"] and not figure["failed"] + figure["lost"] + figure["reordered"] + figure["corrupted"]
        return figure["median"] if is_sound else None

    def best(self, row, libraries):
        medians = [median for median in (self.median(row, library) for library in libraries) if median]
        return (min if row["metric"].endswith("_us") else max)(medians, default=None)


def advantage(own, other, is_time):
    """Returns how many times as good the first figure is."""
    return None if own is None or other is None else other / own if is_time else own / other


def cell_title(row):
    to = f" to {row['subscribers']} SUB" if row.get("subscribers", 1) > 1 else ""
    return f"{PATTERNS[row['pattern']]}{to} {row['transport']}, {size(row['size'])}"


class Page:
    def __init__(self):
        self.measured = Measured(FOLDER / "results.json")
        self.rust = Measured(FOLDER / "published-rust/results.json")
        self.bindings = json.loads((ROOT / "docs/results/benchmark_data.json").read_text(encoding="utf-8"))
        self.text, self.below, self.less, self.rows = [], [], [], 0

    def tautline(self, number, theirs, is_time, report, title):
        """Returns our figure, and notes if it is worse than that of the report."""
        text = value(number, is_time)
        self.rows += 1
        if number is None or theirs is None:
            return text
        if advantage(number, theirs, is_time) < 1:
            self.below.append(f"{report['name']}, {title}: {text}, there {value(theirs, is_time)}")
            return f"**{text}**"
        return text

    def compare(self, here, there, report, title):
        """Returns our ratio to libzmq, and notes if it is worse than that of the report."""
        if here is not None and there is not None and here < there:
            self.less.append(f"{report['name']}, {title}: {times(here)}, there {times(there)}")
        return times(here)

    def c(self, report):
        self.table([f"{report['name']} there", "libzmq there", "ratio there", "libzmq here", "Tautline here", "ratio here", "95 %"])
        for row in report["rows"]:
            is_time = row["metric"].endswith("_us")
            libzmq, ours = (self.measured.median(row, name) for name in ("libzmq", "tautline"))
            ratio = self.measured.ratios.get((key(row), "tautline"))
            interval = "–" if ratio is None else f"{ratio['interval'][0]:.2f}..{ratio['interval'][1]:.2f}"
            there = row.get("libzmq")
            title = cell_title(row)
            ratio_there = advantage(row["theirs"], there, is_time)
            self.line(title, value(row["theirs"], is_time), value(there, is_time), times(ratio_there), value(libzmq, is_time),
                      self.tautline(ours, row["theirs"], is_time, report, title), self.compare(ratio and ratio["ratio"], ratio_there, report, title), interval)

    def rust_rows(self, report):
        self.table(["Monocoque there", "libzmq there", "ratio there", "Monocoque here", "libzmq here", "Tautline here", "to Monocoque here", "to libzmq here"])
        for row in report["rows"]:
            is_time = row["metric"].endswith("_us")
            monocoque = self.rust.best(row, ["monocoque-tokio-coalescing", "monocoque-uring-coalescing"])
            ours, libzmq = self.rust.median(row, "tautline-rust"), self.measured.median(row, "libzmq")
            there, title = row.get("libzmq"), cell_title(row)
            ratio_there = advantage(row["theirs"], there, is_time)
            self.line(title, value(row["theirs"], is_time), value(there, is_time), times(ratio_there), value(monocoque, is_time), value(libzmq, is_time),
                      self.tautline(ours, row["theirs"], is_time, report, title), times(advantage(ours, monocoque, is_time)),
                      self.compare(advantage(ours, libzmq, is_time), ratio_there, report, title))

    def binding_rows(self, report):
        self.table(["libzmq there", "libzmq here", "Tautline here", "ratio here"])
        for row in report["rows"]:
            is_time = row["kind"] == "latency"
            libzmq, ours = (self.binding(row, library) for library in ("libzmq", "tautline"))
            title = f"{LANGUAGES[row['language']]}, {'REQ/REP' if is_time else 'PUSH/PULL'}, {size(row['size'])}"
            self.line(title, value(row["libzmq"], is_time), value(libzmq, is_time), self.tautline(ours, row["libzmq"], is_time, report, title),
                      times(advantage(ours, libzmq, is_time)))

    def binding(self, row, library):
        """Returns the median with the short or the long count; some languages have only one of them."""
        for entry in self.bindings["rows"]:
            if entry["language"] == row["language"] and entry["library"] == library:
                cells = [cell for cell in entry["cells"] if cell["kind"] == row["kind"] and cell["size"] == row["size"]]
                cell = min(cells, key=lambda cell: abs(cell["length"] - row["length"]))
                return statistics.median(cell["samples"]["mean_us" if row["kind"] == "latency" else "messages_per_second"])
        return None

    def change(self, report):
        path = ROOT / report["data"]
        if not path.exists():
            self.text.append("Not measured here yet.\n")
            return
        data = json.loads(path.read_text(encoding="utf-8"))
        load = data["machine"]["load"]
        draft = f", a draft beside other programs (load average {load:.0f})" if load > QUIET else ""
        self.text.append(wrapped(f"Here measured on {data['date'][:10]}{draft}: medians."))
        runs = {(cell, library, metric): samples for cell, library, metric, samples in data["runs"]}
        self.table(["there", "here"])
        changes = []
        for row in report["rows"]:
            is_time = row["metric"].endswith("_us")
            to = f" to {row['subscribers']}" if row.get("subscribers", 1) > 1 else ""
            cell = f"{row['pattern']} {row['transport']} {size(row['size'])}{to}"
            before, after = (runs.get((cell, report[side], row["metric"])) for side in ("before", "after"))
            here = advantage(statistics.median(after), statistics.median(before), is_time) if before and after else None
            there = advantage(row["after"], row["before"], is_time)
            changes.append((there, here))
            self.line(cell_title(row), times(there), times(here))
        both = [pair for pair in changes if pair[1]]
        if both:
            means = [math.exp(statistics.fmean(math.log(pair[side]) for pair in both)) for side in (0, 1)]
            self.line("geometric mean", *(times(mean) for mean in means))

    def table(self, columns):
        self.text.append("| | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))

    def line(self, *columns):
        self.text.append("| " + " | ".join(columns) + " |")

    def write(self):
        kinds = {"c": self.c, "rust": self.rust_rows, "bindings": self.binding_rows, "change": self.change}
        commands = {"c": "make bench SCENARIO=published", "rust": "make bench SCENARIO=published", "bindings": "make languages ONLY=dotnet,node"}
        for report in tomllib.loads((ROOT / "bench/published.toml").read_text(encoding="utf-8"))["reports"]:
            self.text.append(f"\n## {report['title']}\n\n{wrapped(report['note'])}")
            self.text.append(wrapped(f"There: {report['measured']}; {report['source']}. Here: `{report.get('repeat') or commands[report['kind']]}`."))
            kinds[report["kind"]](report)
        results = self.measured.results
        machine, number = results["machine"], sorted({len(ratio["pairs"]) for ratio in results["ratios"]})
        pairs = f"{number[0]}" if len(number) == 1 else f"{number[0]} to {number[-1]}"
        text = [INTRODUCTION]
        text.append(wrapped(
            f"Measured here on {results['date'][:10]} on {machine['cores']} cores of {machine['cpu']}, {machine['kernel']}, in {pairs} interleaved pairs of runs, "
            "beside libzmq 4.3.5. `make bench SCENARIO=published` measures the cells, and `bench/published.py` writes this page. For one cell, give the command "
            "`ARGS=\"--only pattern=fan_out,transport=tcp,subscribers=8\"`. The tables of bindings, monitors and compiler options have the days of their own pages."
        ))
        if machine["load"] > QUIET:
            text.append(wrapped(f"**A draft**: other programs used the cores during this run (load average {machine['load']:.0f}), so all figures of this day are too low."))
        text.append(wrapped(f"Of {self.rows} rows, Tautline's figure is worse than the report's in {len(self.below)}." + (" These are:" if self.below else "")))
        text += listed(self.below) if self.below else []
        text.append(wrapped(f"The ratio beside libzmq is below that of the report in {len(self.less)} rows." + (" These are:" if self.less else "")))
        text += listed(self.less) if self.less else []
        page = "\n".join(text + self.text).replace("\n\n\n", "\n\n")
        (ROOT / "docs/results/published.md").write_text(page + "\n", encoding="utf-8")


Page().write()
