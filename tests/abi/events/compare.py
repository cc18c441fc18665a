#!/usr/bin/env python3
"""Compares target/events/played.tsv with libzmq-4.3.5.tsv. run.sh calls it. With --write, it rewrites differences.tsv.

Both tables have a line for each call and each event, situation after situation: version of the events, situation, socket,
call or event, value, address (version 2: both addresses). differences.tsv has the lines of only one table: the reason, `-`
(libzmq's line) or `+` (our line), and the line.
"""

import difflib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


def situations(path):
    """Returns the lines of a table by version and situation, in the table's order."""
    found = {}
    for line in path.read_text().splitlines():
        version, name, rest = line.split("\t", 2)
        found.setdefault((version, name), []).append(rest)
    return found


def difference(theirs, ours):
    lines = difflib.ndiff(theirs, ours)
    return [line[0] + "\t" + line[2:] for line in lines if line[0] in "-+"]


def expected():
    """Returns the lines of differences.tsv by version and situation, and the reason of each line."""
    found, reasons = {}, {}
    for line in (HERE / "differences.tsv").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        reason, sign, version, name, rest = line.split("\t", 4)
        found.setdefault((version, name), []).append(sign + "\t" + rest)
        reasons[version, name, sign + "\t" + rest] = reason
    return found, reasons


def main():
    theirs, ours = situations(HERE / "libzmq-4.3.5.tsv"), situations(TARGET / "events/played.tsv")
    known, reasons = expected()
    names = list(dict.fromkeys([*theirs, *ours]))
    differences = {name: difference(theirs.get(name, []), ours.get(name, [])) for name in names}

    if sys.argv[1:] == ["--write"]:
        comments = [line for line in (HERE / "differences.tsv").read_text().splitlines() if line.startswith("#")]
        with open(HERE / "differences.tsv", "w") as out:
            out.writelines(line + "\n" for line in comments)
            for (version, name), lines in differences.items():
                for line in lines:
                    reason = reasons.get((version, name, line), "?")
                    sign, rest = line.split("\t", 1)
                    out.write("\t".join([reason, sign, version, name, rest]) + "\n")
        return 0

    passed = failed = 0
    for name in names:
        found, awaited = differences[name], known.get(name, [])
        if found == awaited:
            passed += 1
            continue
        failed += 1
        print(f"FAILED version {name[0]}, {name[1]}: beside libzmq (-), and not as in differences.tsv")
        for line in difflib.ndiff(theirs.get(name, []), ours.get(name, [])):
            if not line.startswith("?"):
                print("    " + line)
    rows = (ROOT / "docs/reference/events.md").read_text()
    for reason in sorted(set(reasons.values())):
        if f"| {reason} |" in rows:
            passed += 1
        else:
            failed += 1
            print(f"FAILED docs/reference/events.md has no row for {reason}")
    print(f"events: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
