"""Writes docs/results/doctor.md."""

import platform
from pathlib import Path

from systems import SYSTEMS

PAGE = Path(__file__).resolve().parents[3] / "docs/results/doctor.md"


def write(found):
    """Writes the page. `found` maps `found NAME` to the finding of a broken system, and `outside NAME` to its differences from outside."""
    if any(f"found {system.name}" not in found for system in SYSTEMS):
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
    PAGE.write_text("\n".join(text) + "\n")
