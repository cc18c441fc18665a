"""Writes docs/results/doctor.md."""

import platform
from pathlib import Path

from causes import CAUSES, HEALTHY, NOT_YET
from systems import SYSTEMS

# The result of testers who did not know the rules.
UNKNOWN = [
    "",
    "## Unknown systems",
    "",
    "Two testers who knew ZeroMQ, but neither the rules nor this page, each designed ten broken and five healthy busy systems on 2026-12-01.",
    "They judged the first run of `taut doctor` on each:",
    "",
    "| | named first | near the cause | not named | false alarms |",
    "|---|--:|--:|--:|--:|",
    "| first ten | 2 | 4 | 4 | 0 of 5 |",
    "| second ten, after rules for the first ones | 4 | 3 | 3 | 1 of 5 |",
    "",
    "So expect that `taut doctor` names about half of the causes that it has never met. The false alarm was a health check that connects and leaves, and is a",
    "note now. In a repetition, the first ten are named (one of them by a note). Of the second ten, one has no rule: a socket that two threads use at the",
    "same time. A slow subscriber over tcp is told by its address, without its program.",
]
PAGE = Path(__file__).resolve().parents[3] / "docs/results/doctor.md"


def score(found):
    """Returns the result for the systems of causes.py that have run."""
    causes = [found[f"cause {system.name}"] for system in CAUSES if f"cause {system.name}" in found]
    alarms = [found[f"healthy {system.name}"] for system in HEALTHY if f"healthy {system.name}" in found]
    named = sum(cause["named"] for cause in causes)
    return f"{named} of {len(causes)} causes named first, {sum(map(bool, alarms))} false alarms in {len(alarms)} healthy busy systems"


def write(found):
    """Writes the page. `found` maps `found NAME` and `cause NAME` to the finding of a broken system, `healthy NAME` to a false alarm, and
    `outside NAME` to its differences from outside."""
    expected = {
        *(f"found {system.name}" for system in SYSTEMS),
        *(f"cause {system.name}" for system in CAUSES),
        *(f"healthy {system.name}" for system in HEALTHY),
    }
    if not expected <= found.keys():
        return
    text = [
        "# Broken systems and `taut doctor`",
        "",
        "For operators who want to know which faults `taut doctor` recognises. This page lists broken systems and the first finding in each.",
        "",
        "The ten systems consist of real programs (pyzmq, Node.js, C). Each has a fault that operators meet.",
        "The same system without the fault has no findings. `tests/tools/doctor/run.sh` runs both, and writes this page with `WRITE=1`.",
        "The programs are in `tests/tools/doctor/systems`. A proxy may stop in two ways, so there are eleven rows.",
        "",
        f"On Linux {platform.release().split('-')[0]}, Python {platform.python_version()}. The numbers are those of one run.",
        "",
        "| fault | found in | `taut doctor` |",
        "|---|---|---|",
    ]
    for system in SYSTEMS:
        hint = found[f"found {system.name}"]
        text.append(f"| {system.about} | `{hint['role']}` | **{hint['what']}**<br>{hint['evidence']}<br>{hint['advice']} |")
    text += [
        "",
        "## From outside",
        "",
        "libzmq 4.3.5 does not report its state. The table shows how the same systems on it differ from those without the fault, in `ss -tanp`, the",
        "number of open files and the state of the process:",
        "",
        "| fault | difference | conclusion | is it the cause? |",
        "|---|---|---|---|",
    ]
    for system in SYSTEMS:
        text.append(f"| {system.about} | {found[f'outside {system.name}'] or 'nothing'} | {system.outside} | {'yes' if system.enough else 'no'} |")
    text += [
        "",
        f"`taut doctor` names {len(SYSTEMS)} of {len(SYSTEMS)} causes. The view from outside shows {sum(system.enough for system in SYSTEMS)} of them.",
    ]
    text += more_systems(found) + UNKNOWN
    PAGE.write_text("\n".join(text) + "\n")


def more_systems(found):
    """Returns the tables of the systems of causes.py."""
    text = [
        "",
        "## Eighteen more systems",
        "",
        "These systems were designed before the rules for their faults. `taut doctor` runs with its default options.",
        "It names a cause if its first finding is a warning or trouble, is about the program and the socket at fault, and has the facts",
        "for a repair. Two consecutive runs must agree; *run* is the number of the first of them after the fault occurred.",
        "The same systems without their faults have neither warnings nor trouble.",
        "",
        f"**{score(found)}.**",
        "",
        "| fault | cause named first? | run | found in | first finding |",
        "|---|---|--:|---|---|",
    ]
    for system in CAUSES:
        cause = found[f"cause {system.name}"]
        place, words = finding(cause["first"])
        named, run = ("yes", cause["run"]) if cause["named"] else ("**not named**", "")
        text.append(f"| {system.about} | {named} | {run} | {place} | {words} |")
    text += [
        "",
        "Six busy systems are healthy, so each warning or trouble is a false alarm:",
        "",
        "| system | false alarm | in | first finding |",
        "|---|---|---|---|",
    ]
    for system in HEALTHY:
        alarm = found[f"healthy {system.name}"]
        place, words = finding(alarm) if alarm else ("", "")
        text.append(f"| {system.about} | {'**yes**' if alarm else 'no'} | {place} | {words} |")
    if NOT_YET:
        text += ["", "The wrong answers have these reasons:", "", "| system | missing |", "|---|---|"]
        text += [f"| {system.about} | {NOT_YET[system.name]} |" for system in (*CAUSES, *HEALTHY) if system.name in NOT_YET]
    return text


def finding(hint):
    """Returns the place and the words of a finding, for a table."""
    if not hint:
        return "", "nothing"
    return f"`{hint['role']}`", f"{hint['level']}: **{hint['what']}**<br>{hint['evidence']}<br>{hint['advice']}".replace("|", "\\|")
