"""Runs the programs of a system in turns, on each library, and prints a table of the medians.

    pairs.py PLAN [PAIRS] [NAME=VALUE...]

PLAN is a TOML file. Each table [[rows]] has `name`, `command` and, if needed, `environment`; NAME=VALUE replaces {NAME} in all of them.
Rows of one `group` are compared with the first row of the group. A command prints one line of JSON: figures by name, and `libraries`, the
files of ZeroMQ that its processes have mapped. A row fails unless `expects` is a part of one of these paths, and if Tautline is mapped
without being expected. All figures go to the folder OUT, into the file NAME_OF_THE_PLAN.json.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tomllib

from processes import tree

plan_file = pathlib.Path(sys.argv[1])
pairs = int(sys.argv[2]) if len(sys.argv) > 2 and "=" not in sys.argv[2] else 5
values = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)


def fill(text):
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def run(row):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent), **{name: fill(value) for name, value in row.get("environment", {}).items()}}
    command = [fill(word) for word in row["command"]]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        output = started.communicate(timeout=row.get("timeout", 600))[0]
    finally:
        if started.poll() is None:
            for number in tree(started.pid):
                os.kill(number, signal.SIGKILL)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if started.returncode or not lines:
        sys.exit(f"pairs: {row['name']} failed with {started.returncode}: {command}\n{output}")
    result = json.loads(lines[-1])
    expected, loaded = fill(row["expects"]), result["libraries"]
    is_ours = any("tautline_zmq/" in library for library in loaded)
    if is_ours != ("tautline_zmq" in expected) or not any(expected in library for library in loaded):
        sys.exit(f"pairs: {row['name']} ran on {loaded}, not on {expected}")
    return result


def shown(number):
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def main():
    rows = tomllib.loads(plan_file.read_text(encoding="utf-8"))["rows"]
    results = {row["name"]: [] for row in rows}
    for pair in range(pairs):
        for row in rows:
            result = run(row)
            results[row["name"]].append(result)
            print(f"[{pair + 1}/{pairs}] {row['name']}: {result}", file=sys.stderr, flush=True)
    out = pathlib.Path(values.get("OUT", ".")) / f"{plan_file.stem}.json"
    out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    first_of_group = {}
    heading = None
    for row in rows:
        first = first_of_group.setdefault(row.get("group", ""), row["name"])
        figures = [name for name, value in results[row["name"]][0].items() if isinstance(value, (int, float)) and name != "MiB"]
        if heading != figures:
            heading = figures
            print("\n| | " + " | ".join(f"{name} | ratio" for name in figures) + " |")
            print("|---|" + "--:|--:|" * len(figures))
        cells = []
        for name in figures:
            ours = [result[name] for result in results[row["name"]]]
            ratios = [other[name] and own[name] / other[name] for own, other in zip(results[row["name"]], results[first])]
            cells += [shown(statistics.median(ours)), f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]
        print(f"| {row['name']} | " + " | ".join(cells) + " |")
    print(f"\nresults: {out}")


main()
