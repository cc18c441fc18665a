"""Tests that a server's secret key is absent from memory and core files after the context ends, and from the output of tools.

The key comes from a policy, or from an option that the program reads from a file.
"""

import os
import pathlib
import re
import subprocess

import pytest
import zmq.utils.z85 as z85
from programs import CLIENT, SERVER, TAUT, curve_to, until, wraps, write

SECRETS = {"text": SERVER[1].encode(), "bytes": z85.decode(SERVER[1])}


def servers(start, folder, **more):
    """Yields a server for each source of its key."""
    at, _ = wraps(folder)
    option = f"CURVE_SECRETKEY@{write(folder / 'secret.txt', SERVER[1])}"
    for policy, options in ((at, []), (None, ["CURVE_SERVER=1", option])):
        with start("bind", "PULL", "tcp://127.0.0.1:*", *options, policy=policy, language="C", **more) as server:
            yield server


def end_context(server):
    server.do("term")
    assert server.line() == "done"


def found_in(path):
    data = path.read_bytes()
    return {name for name, secret in SECRETS.items() if secret in data}


def held(pid):
    """Returns the names of the secrets in the writable memory of a process."""
    found = set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if "rw" not in rights or "[vvar" in line:
                continue
            memory.seek(int(start, 16))
            try:
                data = memory.read(int(end, 16) - int(start, 16))
            except OSError:
                continue
            found.update(name for name, secret in SECRETS.items() if secret in data)
    return found


def test_no_key_stays_in_memory(start, tmp_path):
    for server in servers(start, tmp_path):
        # The text of the file is erased. The key in use is found, which proves that the search works.
        assert held(server.process.pid) == {"bytes"}
        end_context(server)
        assert not held(server.process.pid)
        assert SERVER[1] not in server.said()


def test_no_key_is_in_a_core_file(start, tmp_path):
    """A gcore file has the key while the server runs, and no key after the context ends. gcore dumps all memory, unlike the kernel."""

    def core(name):
        subprocess.run(["gcore", "-a", "-o", str(tmp_path / name), str(server.process.pid)], check=True, capture_output=True)
        return tmp_path / f"{name}.{server.process.pid}"

    for server in servers(start, tmp_path):
        client = start("connect", "PUSH", server.at, *curve_to(CLIENT))
        client.do("send a message")
        assert server.receive() == "received a message"
        assert found_in(core("busy")) == {"bytes"}
        client.end()
        end_context(server)
        assert not found_in(core("ended"))


def test_no_key_is_in_the_core_file_of_a_crash(start, tmp_path):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern:
        pytest.skip(f"the kernel does not write core files to the folder of the program: core_pattern is {pattern}")
    for server in servers(start, tmp_path, core=True):
        end_context(server)
        server.do("abort")
        assert server.process.wait() == -6
        cores = list(tmp_path.glob("core*"))
        if not cores:
            pytest.skip("the kernel wrote no core file")
        assert not found_in(cores[0])
        cores[0].unlink()


def test_no_key_is_shown(start, tmp_path):
    """While keys are in use, they appear neither in the observed file nor in the output of the program and of `taut`."""
    for server in servers(start, tmp_path, TAUT_OBSERVE="1", XDG_RUNTIME_DIR=str(tmp_path)):
        start("connect", "PUSH", server.at, ours=False)
        client = start("connect", "PUSH", server.at, *curve_to(CLIENT))
        client.do("send a message")
        assert server.receive() == "received a message"
        pid = str(server.process.pid)
        observed = tmp_path / "tautline" / pid
        until(lambda: b"CURVE" in observed.read_bytes())
        assert not found_in(observed)
        for arguments in (["ps"], ["show", pid], ["show", pid, "--json"], ["metrics", "--peers"], ["doctor", pid, "--for", "1"]):
            shown = subprocess.run([TAUT, *arguments], env=os.environ | {"TAUT_COUNTERS": str(observed.parent)}, capture_output=True)
            assert pid.encode() in shown.stdout + shown.stderr or arguments[0] != "show", shown
            assert not any(secret in shown.stdout + shown.stderr for secret in SECRETS.values()), arguments
        assert SERVER[1] not in server.said()
