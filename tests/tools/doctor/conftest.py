import os
import subprocess

import page
import pytest

# Names of hosts in the namespace.
HOSTS = """127.0.0.1 localhost stock.test
127.0.0.9 old-stock.test
"""


# Prepares the namespaces. The argument is the file of hosts.
BEGIN = """
set -e
ip link set lo up
mount --bind "$0" /etc/hosts
[ ! -d /run/user ] || mount -t tmpfs tmpfs /run/user
"""
# Hides the counters of other programs of root: `taut` also reads the folders of programs without XDG_RUNTIME_DIR.
HIDE = """
mkdir -p -m 700 /tmp/tautline-0
mount -t tmpfs -o mode=700 tmpfs /tmp/tautline-0
"""


@pytest.fixture(scope="session")
def enter(tmp_path_factory):
    """Yields the command that runs a program in the network and mount namespaces of this pytest worker."""
    hosts = tmp_path_factory.mktemp("names") / "hosts"
    hosts.write_text(HOSTS)
    begin = BEGIN + HIDE * (os.geteuid() == 0) + "echo up\nexec cat"
    for unshare, nsenter in (["-nm"], ["-n", "-m"]), (["-rnm"], ["-U", "--preserve-credentials", "-n", "-m"]):
        with subprocess.Popen(
            ["unshare", *unshare, "sh", "-c", begin, hosts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as holder:
            if holder.stdout.readline() == b"up\n":
                yield ["nsenter", "-t", str(holder.pid), *nsenter]
                return
            why = holder.stderr.read().decode().strip()
    pytest.skip(f"no network and mount namespace: {why}")


def pytest_terminal_summary(terminalreporter):
    """Prints the score, and writes the page from the findings that the cases recorded."""
    reports = [report for kind in ("passed", "xfailed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = dict(found for report in reports for found in report.user_properties)
    terminalreporter.write_line(page.score(found))
    if os.environ.get("WRITE") == "1" and not any(terminalreporter.stats.get(kind) for kind in ("failed", "error", "skipped")):
        page.write(found)
