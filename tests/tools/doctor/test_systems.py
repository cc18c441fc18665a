"""Broken systems of real programs, and what `taut doctor` says of them."""

import os

import outside
import pytest
from programs import Run, says
from systems import SYSTEMS

# Longer than any rule waits before it reports.
HEALTHY_SECONDS = 14
each_system = pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)


@each_system
def test_broken(system, enter, tmp_path, record_property):
    """The cause is named first, of all processes and of the one that it is in."""
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
    """Nothing is found in the same system without the fault."""
    with Run(system, tmp_path, enter, broken=False) as run:
        run.observed()
        run.works()
        assert run.findings(HEALTHY_SECONDS) == []


if os.environ.get("WRITE") == "1":

    @each_system
    def test_outside(system, enter, tmp_path, record_property):
        """What the same system on libzmq shows, for the page."""
        seen = {}
        for broken in (False, True):
            place = tmp_path / str(broken)
            place.mkdir()
            with Run(system, place, enter, broken, ours=False) as run:
                seen[broken] = outside.look(run)
        record_property(f"outside {system.name}", outside.differences(seen[False], seen[True]))
