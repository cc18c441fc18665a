import contextlib
import os
import subprocess

import pytest
from programs import Peer, Program


@pytest.fixture
def run():
    """Returns a function that starts a program (`programs.Program`). The program is killed at the end of the case."""
    with contextlib.ExitStack() as programs:
        yield lambda *arguments, kind=Program, **more: programs.enter_context(contextlib.closing(kind(*arguments, **more)))


@pytest.fixture
def start(run):
    """Returns a function that starts a peer (`programs.Peer`)."""
    return lambda *arguments, **more: run(*arguments, kind=Peer, **more)


@pytest.fixture
def hosts():
    """Yields the names and addresses of two connected network namespaces."""
    if os.geteuid():
        pytest.skip("network namespaces need root")
    names = [f"taut-{os.getpid()}-{side}" for side in "ab"]

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], capture_output=True, text=True)

    try:
        made = [ip("netns", "add", name) for name in names]
        made.append(ip("link", "add", "t0", "netns", names[0], "type", "veth", "peer", "name", "t0", "netns", names[1]))
        for one in made:
            if one.returncode:
                pytest.skip(f"network namespaces: {one.stderr.strip()}")
        for name, address in zip(names, ("10.99.7.1", "10.99.7.2")):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "t0")
            for link in ("t0", "lo"):
                ip("-n", name, "link", "set", link, "up")
        yield [(names[0], "10.99.7.1"), (names[1], "10.99.7.2")]
    finally:
        for name in names:
            ip("netns", "del", name)
