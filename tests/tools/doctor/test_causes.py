"""Tests that the first finding of `taut doctor` names the cause in each system of causes.py, and that healthy systems have no faults."""

import re
import time

import pytest
from causes import CAUSES, HEALTHY, NOT_YET
from programs import Run, words_of

# Longest time until the cause is named, in seconds.
WATCHDOG = 60
# Number of runs of `taut doctor` if NOT_YET has the system. Together they take longer than the delay of each rule.
LOOKS = 5
# Number of consecutive runs that must name the cause first.
IN_A_ROW = 2
# Time of observation of a system without its fault, in seconds.
HEALTHY_SECONDS = 14


class Missed(Exception):
    """`taut doctor` does not name the cause, or has a false alarm."""


def each(systems):
    known = pytest.mark.xfail(raises=Missed, strict=True, reason="`taut doctor` gets this system right now: remove it from NOT_YET in causes.py")
    return pytest.mark.parametrize("system", [pytest.param(one, id=one.name, marks=[known] * (one.name in NOT_YET)) for one in systems])


@each(CAUSES)
def test_cause(system, enter, tmp_path, record_property):
    """The first finding names the cause, twice in a row."""
    with Run(system, tmp_path, enter, broken=True) as run:
        run.observed()
        if system.begins == "broken":
            run.works("broken")
        else:
            run.reaches(*system.begins)
        began, looks, in_a_row, first = time.monotonic(), 0, 0, None
        while in_a_row < IN_A_ROW and (looks < LOOKS if system.name in NOT_YET else time.monotonic() < began + WATCHDOG):
            found = run.doctor()
            show(found)
            looks += 1
            first = found[0] if found else None
            in_a_row = in_a_row + 1 if first and is_cause(system, run, first) else 0
        named = in_a_row == IN_A_ROW
        record_property(f"cause {system.name}", {"named": named, "run": looks - IN_A_ROW + 1, "first": first})
        if not named:
            raise Missed(first)


def show(found):
    """Prints findings, for the output of a failed test."""
    print(*(f"{hint['level']} {hint['role']}: {hint['what']} ({hint['evidence']})" for hint in found), "", sep="\n")


def is_cause(system, run, hint):
    text = words_of(hint)
    if hint["level"] == "note" or system.rule not in ("", hint["rule"]) or not re.search(system.words, text, re.DOTALL):
        return False
    at = [kind for role, kind in system.cause_at if role == hint["role"]]
    # A finding about a whole process has the type of the socket in its text.
    sockets = run.reading(hint["pid"]).get("sockets", []) if hint["socket"] else []
    kinds = [socket["type_name"] for socket in sockets if socket["id"] == hint["socket"]]
    return any(kind in kinds if kinds else kind in text for kind in at if kind) or "" in at


@pytest.mark.parametrize("system", CAUSES, ids=lambda system: system.name)
def test_without_fault(system, enter, tmp_path):
    """The same system without the fault has no findings of the level warning or trouble."""
    alarm = look_at_healthy(system, enter, tmp_path, HEALTHY_SECONDS)
    assert alarm is None


@each(HEALTHY)
def test_busy(system, enter, tmp_path, record_property):
    """A healthy system that is busy has no findings of the level warning or trouble."""
    alarm = look_at_healthy(system, enter, tmp_path, system.seconds)
    record_property(f"healthy {system.name}", alarm)
    if alarm:
        raise Missed(alarm)


def look_at_healthy(system, enter, place, seconds):
    """Returns the first false alarm, if any."""
    with Run(system, place, enter, broken=False) as run:
        run.observed()
        run.works()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = run.doctor()
            show(found)
            if alarm := next((hint for hint in found if hint["level"] != "note"), None):
                return alarm
    return None
