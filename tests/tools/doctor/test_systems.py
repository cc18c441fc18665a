"""Tests the findings of `taut doctor` in broken systems of real programs."""

import os

import outside
import pytest
from programs import Run, says
from systems import SYSTEMS

# Observation time that is longer than the delay of each rule before its report.
HEALTHY_SECONDS = 14
each_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@each_system
def test_broken(system, enter, tmp_path, record_property):
    """The first finding names the cause, for all processes and for the process with the fault."""
    with Run(system, tmp_path, enter, broken=True) as run:
        run.observed()
        run.make_broken()
        while True:
            found = run.findings(3)
            print(*found, "", sep="\n")
            if found and is_cause(system, found[0]) and (not system.also or any(says(hint, *system.also) for hint in found)):
                alone = run.findings(3, run.processes[system.where].pid)
                if alone and is_cause(system, alone[0]):
                    break
            run.signal()
    record_property(f"found {system.name}", alone[0])


def is_cause(system, hint):
    return says(hint, system.where, system.rule, system.words)


@each_system
def test_healthy(system, enter, tmp_path):
    """The same system without the fault has no findings."""
    with Run(system, tmp_path, enter, broken=False) as run:
        run.observed()
        run.works()
        assert run.findings(HEALTHY_SECONDS) == []


if os.environ.get("WRITE") == "1":

    @each_system
    def test_outside(system, enter, tmp_path, record_property):
        """Records the outside view of the same system on libzmq, for the page."""
        seen = {}
        for broken in (False, True):
            place = tmp_path / str(broken)
            place.mkdir()
            with Run(system, place, enter, broken, ours=False) as run:
                seen[broken] = outside.look(run)
        record_property(f"outside {system.name}", outside.differences(seen[False], seen[True]))
