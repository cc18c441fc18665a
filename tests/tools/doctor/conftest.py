import os
import subprocess

import page
import pytest


@pytest.fixture(scope="session")
def enter():
    """Yields the command that runs a program in the network namespace of this pytest worker."""
    for unshare, nsenter in (["-n"], ["-n"]), (["-rn"], ["-U", "--preserve-credentials", "-n"]):
        with subprocess.Popen(
            ["unshare", *unshare, "sh", "-c", "ip link set lo up && echo up && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as holder:
            if holder.stdout.readline() == b"up\n":
                yield ["nsenter", "-t", str(holder.pid), *nsenter]
                return
            why = holder.stderr.read().decode().strip()
    pytest.skip(f"no network namespace: {why}")


def pytest_terminal_summary(terminalreporter):
    """Writes the page from the findings that the cases recorded."""
    passed = terminalreporter.stats.get("passed", [])
    if os.environ.get("WRITE") == "1" and not any(terminalreporter.stats.get(kind) for kind in ("failed", "error", "skipped")):
        page.write(dict(found for report in passed for found in report.user_properties))
