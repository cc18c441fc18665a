"""Starts programs under policies, and writes the policies that wrap all tcp sockets.

run.sh sets LIBRARY (the library under test), PEER_C (peer.c, compiled), TAUT and NODE_PATH.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import trustme
import zmq

LIBRARY, PEER_C, TAUT = os.environ["LIBRARY"], os.environ["PEER_C"], os.environ["TAUT"]
HERE = pathlib.Path(__file__).parent
PROGRAMS = {"pyzmq": [sys.executable, str(HERE / "peer.py")], "C": [PEER_C], "Node.js": ["node", str(HERE / "peer.js")]}
SERVER, CLIENT, STRANGER = (tuple(key.decode() for key in zmq.curve_keypair()) for _ in range(3))
CURVE_AT = ["CURVE_SERVER=1", "CURVE_SECRETKEY=" + SERVER[1]]


def curve_to(keys):
    """Returns the CURVE options of a client of SERVER."""
    return ["CURVE_SERVERKEY=" + SERVER[0], "CURVE_PUBLICKEY=" + keys[0], "CURVE_SECRETKEY=" + keys[1]]


class Peer:
    """A running peer program. `policy` is the value of TAUT_POLICY. Without `ours` the program runs on stock libzmq. Without `wait` the
    program may still be starting, and `opened` waits for it."""

    def __init__(self, folder, *arguments, policy=None, ours=True, language="pyzmq", core=False, wait=True, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        if ours:
            environment["LD_PRELOAD"] = LIBRARY
        if policy is not None:
            environment["TAUT_POLICY"] = str(policy)
        arguments = list(arguments)
        if language == "C":
            arguments[1] = arguments[1].lower()
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            PROGRAMS[language] + arguments,
            env=environment | variables,
            cwd=folder,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)) if core else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        if wait:
            self.opened()

    def opened(self):
        word, _, self.at = self.line().partition(" ")
        self.failed = int(self.at) if word == "failed" else None

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            self.ended()
        return line.rstrip("\n")

    def do(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.ended()

    def ended(self):
        """Fails the test, because the program ended before it was told to."""
        raise AssertionError(f"{self.process.args} ended with {self.process.wait()}: {self.said()}")

    def receive(self):
        self.do("receive")
        return self.line()

    def said(self):
        """Returns the program's standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def until(condition):
    while not condition():
        time.sleep(0.02)


def write(path, text):
    """Replaces a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name("." + path.name)
    new.write_text(text)
    os.rename(new, path)
    return path


RULE = '[[rules]]\ncall = "{}"\nendpoint = "tcp://*"\naction = "wrap"\nwrap = "x"\n'.format


def wraps(folder):
    """Writes policies that put CURVE on all tcp sockets, for a server and for its clients. Returns the two paths."""
    pair = 'public = "{}"\nsecret = "{}"\n'.format
    write(folder / "server.key", pair(*SERVER))
    write(folder / "client.key", pair(*CLIENT))
    write(folder / "server.pub", SERVER[0] + "\n")
    write(folder / "clients/one.pub", CLIENT[0] + "\n")
    at = f'[wraps.x]\nkey = "{folder}/server.key"\nclients = "{folder}/clients"\n'
    to = f'[wraps.x]\nkey = "{folder}/client.key"\nservers = {{ "tcp://*" = "{folder}/server.pub" }}\n'
    return write(folder / "at.toml", at + RULE("bind")), write(folder / "to.toml", to + RULE("connect"))


def tls(folder):
    """Writes such policies with TLS and certificates at both ends. The third returned value is the certificate authority."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(write(folder / "tls/ca.pem", ""))
    certify(folder, ca, "server", "127.0.0.1")
    certify(folder, ca, "client", "alice.example.org")
    wrap = f'[wraps.x]\nprotocol = "tls"\ncertificate = "{folder}/tls/NAME.pem"\nkey = "{folder}/tls/NAME-key.pem"\n'
    at = wrap.replace("NAME", "server") + f'clients = "{folder}/tls/ca.pem"\n' + RULE("bind")
    to = wrap.replace("NAME", "client") + f'trust = "{folder}/tls/ca.pem"\n' + RULE("connect")
    return write(folder / "tls-at.toml", at), write(folder / "tls-to.toml", to), ca


def certify(folder, ca, name, host):
    """Writes a new certificate and its key."""
    certificate = ca.issue_cert(host, common_name=host)
    write(folder / f"tls/{name}-key.pem", certificate.private_key_pem.bytes().decode())
    write(folder / f"tls/{name}.pem", "".join(blob.bytes().decode() for blob in certificate.cert_chain_pems))
