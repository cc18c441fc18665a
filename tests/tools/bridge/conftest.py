import os

import pytest
from programs import Bridge, Case


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long, and other cases try the same")


@pytest.fixture
def kills():
    return int(os.environ["KILLS"])


@pytest.fixture
def times(kills):
    """Number of rounds for faults that take several seconds each."""
    return max(1, kills // 5)


@pytest.fixture
def case(tmp_path, record_property):
    case = Case(str(tmp_path), record_property)
    yield case
    for thing in case.made:
        # pytest shows this output if the case fails.
        if isinstance(thing, Bridge):
            print(*thing.said[-20:], thing.numbers, sep="\n")
    case.end()


def pytest_terminal_summary(terminalreporter):
    rows = [cells for report in terminalreporter.stats.get("passed", []) for name, cells in report.user_properties if name == "row"]
    if rows:
        terminalreporter.write_line("\n| promise | killed | kills | sent | lost | doubled |\n|---|---|--:|--:|--:|--:|")
        for row in rows:
            terminalreporter.write_line("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |")
