"""Starts the programs of the cases: peers (peer.py), servers and agents, with the files that they use.

run.sh sets LIBRARY (the library under test), TAUT and NATS_SERVER.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

LIBRARY, TAUT, NATS_SERVER = os.environ["LIBRARY"], os.environ["TAUT"], os.environ["NATS_SERVER"]
PEER = [sys.executable, str(pathlib.Path(__file__).parent / "peer.py")]
NAME_EVENT = 0x20000000


def until(what, condition):
    """Waits until `condition` returns a true value. `what` names the wait in the traceback of a timeout."""
    while not (found := condition()):
        time.sleep(0.02)
    return found


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def reachable(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def replace(path, text):
    """Replaces a file with a new one, as editors do."""
    new = pathlib.Path(f"{path}.new")
    new.write_text(text)
    os.replace(new, path)
    return path


def entries(names, name="orders"):
    """Returns the entries of a name in the folder of a names file."""
    folder = names.parent / "f" / name
    return [path for path in folder.glob("*") if path.suffix != ".ipc" and not path.name.startswith(".")] if folder.is_dir() else []


def asked(peer, name, text="hello"):
    """Sends a request with a REQ, and returns the id of the process that answered."""
    answer = peer("ask", name, text)
    assert answer.endswith(f" {text}"), answer
    return int(answer.split()[0])


class Program:
    """A running program. `host` is its network namespace, if any."""

    def __init__(self, command, host=None, **more):
        prefix = ["ip", "netns", "exec", host] if host else []
        self.command, self.more = prefix + [str(part) for part in command], more
        self.errors = tempfile.TemporaryFile("w+")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=self.errors, text=True, **self.more)

    def said(self):
        """Returns the program's standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Kills the program at the end of its case. If the case fails, pytest shows the program's standard error."""
        self.kill()
        print(*self.command, self.said(), sep="\n")


class Peer(Program):
    """A pyzmq program that executes the commands of a case."""

    def __init__(self, names=None, host=None, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        environment["LD_PRELOAD"] = LIBRARY
        if names is not None:
            environment["TAUT_NAMES"] = str(names)
        super().__init__(PEER, host, env=environment | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, *command):
        """Runs a command, and returns its value or the name of its errno."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the peer has died: {self.said()}"
        answer = json.loads(line)
        return answer.get("errno", answer.get("value"))

    def socket(self, name, kind, connect=None, bind=None, **options):
        assert self("socket", name, kind, options) is True
        if connect:
            got = self("connect", name, connect)
            assert got is True, got
        if bind:
            got = self("bind", name, bind)
            assert got is True, got

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, self.said()


class Dns:
    """A real DNS server (dnsmasq) on its own port."""

    def __init__(self, run, folder, *records):
        self.run, self.folder, self.port, self.program = run, folder, free_port(), None
        self.change(*records)

    def change(self, *records):
        """Restarts the server with other records. A reload is not enough, as dnsmasq does not reload SRV records."""
        if self.program:
            self.program.kill()
        base = [f"port={self.port}", "listen-address=127.0.0.1", "bind-interfaces", "no-resolv", "no-hosts", "local=/test/", "local-ttl=1", "user=root"]
        conf = replace(self.folder / "dnsmasq.conf", "\n".join([*base, *records]) + "\n")
        self.program = self.run(["dnsmasq", "--keep-in-foreground", f"--conf-file={conf}"])
        until("dnsmasq listens", lambda: reachable(self.port))

    def names(self, more=""):
        return replace(self.folder / "names.toml", f'[dns]\nsuffix = "test"\nservers = "127.0.0.1:{self.port}"\n{more}')


class Server:
    """A real nats-server with JetStream."""

    def __init__(self, run, folder, namespace=None, address="127.0.0.1"):
        self.port = free_port()
        self.program = run([NATS_SERVER, "-a", address, "-p", self.port, "-js", "-sd", folder / "nats"], host=namespace)


class Host:
    """A host with a folder, a names file and an agent."""

    lease = 3  # seconds

    def __init__(self, run, folder, nats_port, namespace=None, address="127.0.0.1", nats_host="127.0.0.1"):
        folder.mkdir()
        text = f'[folder]\npath = "{folder}/f"\ntcp = "tcp://{address}:*"\n[nats]\nservers = "nats://{nats_host}:{nats_port}"\nlease = {self.lease}\n'
        self.run, self.names = run, replace(folder / "names.toml", text)
        self.namespace = namespace
        self.agent = run([TAUT, "names", "--serve", "--file", self.names], host=namespace)

    def peer(self):
        return self.run(self.names, self.namespace, kind=Peer)
