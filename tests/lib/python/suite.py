"""A pytest plugin that the suites share. It selects tests by parts of their names and prints the closing lines of a suite."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--suite", default="pytest", help="name in the closing line")
    parser.addoption("--again", default="pytest", help="command that repeats a test when its name is appended")
    parser.addoption("--word", action="append", default=[], help="run only tests whose names contain one of these")


def pytest_collection_modifyitems(config, items):
    words = config.getoption("--word")
    if words:
        items[:] = [item for item in items if any(word in item.name for word in words)]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """Prints the closing lines after pytest's own output."""
    result = yield
    # Workers of pytest-xdist have no terminal.
    if terminalreporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        close(terminalreporter, session.config)
    return result


def close(terminalreporter, config):
    def reports(kind):
        return terminalreporter.stats.get(kind, [])

    def name(report):
        return report.nodeid.split("::", 1)[-1]

    for report in reports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"skipped {name(report)}: {reason.removeprefix('Skipped: ')}")
    failed = [name(report) for report in reports("failed") + reports("error")]
    for one in dict.fromkeys(failed):
        terminalreporter.write_line(f"FAILED {one}")
        terminalreporter.write_line(f"again: {config.getoption('--again')} '{one}'")
    # A known failure of third-party code is marked xfail.
    known = len(reports("xfailed"))
    terminalreporter.write_line(
        f"{config.getoption('--suite')}: {len(reports('passed'))} passed, {len(failed)} failed, "
        f"{len(reports('skipped'))} skipped" + (f", {known} known failures" if known else "")
    )
