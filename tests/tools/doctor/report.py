"""What came of it: printed, counted, and written to docs/results/pager.md if WRITE=1."""

import json
import os
import platform
from pathlib import Path

from systems import SYSTEMS

PAGE = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "results" / "pager.md"


def report(files):
    results = {}
    for file in map(Path, files):
        name = file.stem
        results[name] = json.loads(file.read_text()) if file.exists() else {}
    passed = failed = 0
    rows, outside = [], []
    for system in SYSTEMS:
        if system.name not in results:
            continue
        told = results[system.name]
        found = (told.get("broken") or {}).get("found")
        if found:
            passed += 1
            print(f"ok - {system.about}\n    {said(found[0])}")
            for other in found[1:]:
                print(f"    then {other['role']}: {other['what']}")
            rows.append((system, found))
        else:
            failed += 1
            print(f"FAILED {system.about}: wanted {system.rule} in {system.where} and {system.words!r}; it says\n{told.get('last', 'nothing')}")
        healthy = told.get("healthy")
        if healthy == []:
            passed += 1
            print("ok - and nothing if it is healthy")
        else:
            failed += 1
            print(f"FAILED {system.about}, healthy: {'not run' if healthy is None else [said(hint) for hint in healthy]}")
        if not found or healthy != []:
            print(f"again: tests/tools/doctor/run.sh {system.name}")
        if "outside broken" in told:
            outside.append((system, differences(told["outside healthy"], told["outside broken"])))
            print(f"    libzmq, from outside: {outside[-1][1] or 'as if it were healthy'}")
    if os.environ.get("WRITE") == "1" and not failed and len(rows) == len(SYSTEMS):
        PAGE.write_text(page(rows, outside))
    print(f"pager: {passed} passed, {failed} failed, 0 skipped")
    raise SystemExit(failed > 0)


def said(hint):
    return f"{hint['level']}: {hint['role']}: {hint['what']}\n    {hint['evidence']}\n    {hint['advice']}"


def differences(healthy, broken):
    """What the broken system shows that the healthy one does not."""
    seen = []
    if broken["connections"] < healthy["connections"]:
        seen.append(f"{broken['connections']} connections, not {healthy['connections']}")
    elif broken["connections"] > healthy["connections"]:
        seen.append(f"{broken['connections']} connections")
    if broken["come and go"] > healthy["come and go"] + healthy["connections"]:
        seen.append("connections come and go")
    for queue, of in (("receive", "{} bytes that `{}` does not take"), ("send", "{} bytes of `{}` that are not sent")):
        for role, amount in broken[queue].items():
            if amount > 10 * healthy[queue].get(role, 0):
                seen.append(of.format(amount, role))
    for role, limit in broken["limits"].items():
        if broken["files"][role] >= limit:
            seen.append(f"`{role}` has {broken['files'][role]} files open, of {limit}")
    seen.extend(f"`{role}` is in the state T" for role in broken["stopped"])
    return "; ".join(seen)


def page(rows, outside):
    text = [
        "# The pager test",
        "",
        "Ten systems of real programs (pyzmq, Node.js, C), each with a fault of those that one is woken for at night, and what `taut doctor` says first.",
        "In the same system without the fault it finds nothing. `tests/tools/doctor/run.sh` runs both, and writes this page with `WRITE=1`; the programs",
        "are in `tests/tools/doctor/systems`. A proxy may stop in two ways, so there are eleven rows.",
        "",
        f"On Linux {platform.release().split('-')[0]}, Python {platform.python_version()}; the numbers are those of one run.",
        "",
        "| fault | found in | `taut doctor` |",
        "|---|---|---|",
    ]
    for system, found in rows:
        hint = found[0]
        text.append(f"| {system.about} | `{hint['role']}` | **{hint['what']}**<br>{hint['evidence']}<br>{hint['advice']} |")
    text += [
        "",
        "## From outside",
        "",
        "libzmq 4.3.5 tells nothing of itself. What `ss -tanp`, the count of open files and the state of the process show of the same systems on",
        "it, beside those without the fault:",
        "",
        "| fault | what differs | what one knows by that | is it the cause? |",
        "|---|---|---|---|",
    ]
    for system, seen in outside:
        text.append(f"| {system.about} | {seen or 'nothing'} | {system.outside} | {'yes' if system.enough else 'no'} |")
    named = sum(system.enough for system, _ in outside)
    text += ["", f"{len(rows)} of {len(rows)} are named by `taut doctor`, {named} of {len(outside)} by what is seen from outside."]
    return "\n".join(text) + "\n"
