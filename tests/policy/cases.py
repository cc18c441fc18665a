"""Unmodified programs under policies: pyzmq and C on Tautline, and pyzmq on the libzmq 4.3.5 of its wheel at the other end.

cases.py LIBRARY PEER_C FOLDER [WORD]: only the cases with WORD in their names. Ends with `policy: N passed, N failed, N skipped`.
"""

import ctypes
import errno
import faulthandler
import os
import pathlib
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import traceback

import trustme
import zmq

LIBRARY, PEER_C, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
WORD = sys.argv[4] if len(sys.argv) > 4 else ""
HERE = pathlib.Path(__file__).parent
SERVER, CLIENT, STRANGER = (tuple(key.decode() for key in zmq.curve_keypair()) for _ in range(3))


class Skip(Exception):
    """The library has not what the case is about."""


class Peer:
    """A program that runs. `policy` is the value of TAUT_POLICY; without `ours` it is on stock libzmq."""

    all = []

    def __init__(self, *arguments, policy=None, ours=True, c=False):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        if ours:
            environment["LD_PRELOAD"] = LIBRARY
        if policy is not None:
            environment["TAUT_POLICY"] = str(policy)
        program = [PEER_C] if c else [sys.executable, str(HERE / "peer.py")]
        self.errors = open(FOLDER / f"errors-{len(Peer.all)}", "w+")
        self.process = subprocess.Popen(
            program + list(arguments), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        Peer.all.append(self)
        word, _, self.at = self.line().partition(" ")
        self.failed = int(self.at) if word == "failed" else None

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def do(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def receive(self):
        self.do("receive")
        return self.line()

    def said(self):
        """What it has on standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


def file(name, text):
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name("." + path.name)
    new.write_text(text)
    os.rename(new, path)
    return path


def wraps():
    """Policies that put CURVE on all of tcp, for a server and for its clients."""
    pair = "public = \"{}\"\nsecret = \"{}\"\n".format
    file("server.key", pair(*SERVER))
    file("client.key", pair(*CLIENT))
    file("server.pub", SERVER[0] + "\n")
    file("clients/one", CLIENT[0] + "\n")
    at = f'[wraps.x]\nkey = "{FOLDER}/server.key"\nclients = "{FOLDER}/clients"\n'
    to = f'[wraps.x]\nkey = "{FOLDER}/client.key"\nservers = {{ "tcp://*" = "{FOLDER}/server.pub" }}\n'
    rule = '[[rules]]\ncall = "{}"\nendpoint = "tcp://*"\naction = "wrap"\nwrap = "x"\n'.format
    return file("at.toml", at + rule("bind")), file("to.toml", to + rule("connect"))


def tls():
    """The same with TLS, and certificates at both ends; and the authority."""
    if ctypes.CDLL(LIBRARY, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND).zmq_has(b"tls+tcp") != 1:
        raise Skip("the library was built without TLS")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(file("tls/ca.pem", ""))
    for name, host in (("server", "127.0.0.1"), ("client", "alice.example.org")):
        certify(ca, name, host)
    common = f'[wraps.x]\nprotocol = "tls"\ncertificate = "{FOLDER}/tls/NAME.pem"\nkey = "{FOLDER}/tls/NAME-key.pem"\n'
    rule = '[[rules]]\ncall = "{}"\nendpoint = "tcp://*"\naction = "wrap"\nwrap = "x"\n'.format
    at = common.replace("NAME", "server") + f'clients = "{FOLDER}/tls/ca.pem"\n' + rule("bind")
    to = common.replace("NAME", "client") + f'trust = "{FOLDER}/tls/ca.pem"\n' + rule("connect")
    return file("tls-at.toml", at), file("tls-to.toml", to), ca


def certify(ca, name, host):
    """A new certificate and its key, in files."""
    certificate = ca.issue_cert(host, common_name=host)
    file(f"tls/{name}-key.pem", certificate.private_key_pem.bytes().decode())
    file(f"tls/{name}.pem", "".join(blob.bytes().decode() for blob in certificate.cert_chain_pems))


def relay(endpoint):
    """A relay to an endpoint that keeps what passes: its own endpoint, and the bytes."""
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    listener = socket.create_server(("127.0.0.1", 0))
    seen = bytearray()

    def copy(source, target):
        while data := source.recv(65536):
            seen.extend(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def accept():
        near, _ = listener.accept()
        far = socket.create_connection((host, int(port)))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "tcp://127.0.0.1:%d" % listener.getsockname()[1], seen


def held(pid, secrets):
    """Which of the secrets lie in the memory of a process that can be written."""
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
            found.update(name for name, secret in secrets.items() if secret in data)
    return found


# What each ready-made policy says of a bind or a connect: A(llowed), W(arned of), R(efused).
TABLE = [
    ("bind", "tcp://*:*", [], "WRR"),
    ("bind", "tcp://127.0.0.1:*", [], "AAR"),
    ("bind", "tcp://*:*", ["CURVE_SERVER=1", "CURVE_SECRETKEY=" + SERVER[1]], "AAA"),
    ("bind", "ws://*:*", [], "WRR"),
    ("bind", "ipc://{folder}/{policy}", [], "WAA"),
    ("bind", "inproc://x", [], "AAA"),
    ("connect", "tcp://127.0.0.1:9", [], "AAR"),
    ("connect", "ipc://{folder}/none", [], "AAR"),
]


def ready_made_policies():
    for how, endpoint, options, wanted in TABLE:
        for policy, letter in zip(("audit", "loopback", "strict"), wanted):
            for c in (False, True):
                if c and options:
                    continue
                at = endpoint.format(folder=FOLDER, policy=f"{policy}-{c}")
                kind = "pull" if c else "PULL"
                peer = Peer(how, kind, at, *options, policy=policy, c=c)
                what = f"{policy}: {how} {at} {options} {'C' if c else 'pyzmq'}: {peer.failed} {peer.said()}"
                assert peer.failed == (errno.EACCES if letter == "R" else None), what
                told = {"A": "", "W": "warns of", "R": "refuses"}[letter]
                assert (f"rule `{policy}:" in peer.said() and told in peer.said()) if told else not peer.said(), what
                if at.startswith("ipc://") and how == "bind" and policy != "audit":
                    assert stat.S_IMODE(os.stat(at.removeprefix("ipc://")).st_mode) == 0o600, what


def without_a_policy_nothing_is_different():
    for ours in (False, True):
        peer = Peer("bind", "PULL", "tcp://*:*", ours=ours)
        assert peer.failed is None and not peer.said()


def a_wrong_file_is_told():
    path = file("wrong.toml", "[[rules]]\naction = \"drop\"\n")
    for c in (False, True):
        peer = Peer("bind", "pull" if c else "PULL", "tcp://127.0.0.1:*", policy=path, c=c)
        assert peer.failed == errno.EINVAL
        assert f"policy {path}: line 2: `action` must be one of" in peer.said(), peer.said()
    assert Peer("bind", "PULL", "tcp://127.0.0.1:*", policy="/nowhere").failed == errno.EINVAL


def wrapped_at_both_ends():
    at, to = wraps()
    for c in (False, True):
        server = Peer("bind", "pull" if c else "PULL", "tcp://127.0.0.1:*", policy=at, c=c)
        between, seen = relay(server.at)
        client = Peer("connect", "push" if c else "PUSH", between, policy=to, c=c)
        client.do("send what nobody may read")
        assert server.receive() == "received what nobody may read"
        assert b"CURVE" in seen and b"INITIATE" in seen, bytes(seen)
        assert b"nobody may read" not in seen and b"Socket-Type" not in seen


def wrapped_against_stock_libzmq():
    at, to = wraps()
    curve = lambda keys: ["CURVE_SERVERKEY=" + SERVER[0], "CURVE_PUBLICKEY=" + keys[0], "CURVE_SECRETKEY=" + keys[1]]
    server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    plain = Peer("connect", "PUSH", server.at, ours=False)
    stranger = Peer("connect", "PUSH", server.at, *curve(STRANGER), ours=False)
    client = Peer("connect", "PUSH", server.at, *curve(CLIENT), ours=False)
    for peer in (plain, stranger, client):
        peer.do("send from " + peer.process.args[-1][-4:])
    client.do("send from a friend")
    assert server.receive() == "received from " + CLIENT[1][-4:]
    assert server.receive() == "received from a friend"
    server = Peer("bind", "PULL", "tcp://127.0.0.1:*", "CURVE_SERVER=1", "CURVE_SECRETKEY=" + SERVER[1], ours=False)
    client = Peer("connect", "PUSH", server.at, policy=to)
    client.do("send from one that is wrapped")
    assert server.receive() == "received from one that is wrapped"


def wrapped_in_tls_at_both_ends():
    at, to, _ = tls()
    for server_in_c, client_in_c in ((False, False), (True, False), (False, True)):
        server = Peer("bind", "pull" if server_in_c else "PULL", "tcp://127.0.0.1:*", policy=at, c=server_in_c)
        assert server.failed is None and server.at.startswith("tcp://"), server.said()
        between, seen = relay(server.at)
        client = Peer("connect", "push" if client_in_c else "PUSH", between, policy=to, c=client_in_c)
        assert client.failed is None, client.said()
        client.do("send what nobody may read")
        assert server.receive() == "received what nobody may read"
        # Records of a handshake and of data, with the version number that all have.
        assert seen[:2] == b"\x16\x03" and b"\x17\x03\x03" in seen, bytes(seen)
        assert not any(plain in seen for plain in (b"nobody may read", b"Socket-Type", b"NULL", b"READY")), bytes(seen)


def wrapped_in_tls_against_others():
    """What it puts on is TLS as others speak it: Python's OpenSSL before stock libzmq."""
    at, to, ca = tls()
    server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.load_cert_chain(FOLDER / "tls/client.pem", FOLDER / "tls/client-key.pem")
    port = int(server.at.rsplit(":", 1)[1])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as stream:
        assert stream.version() == "TLSv1.3"
        ready = b"\5READY\x0bSocket-Type\0\0\0\4PUSH"
        stream.sendall(b"\xff" + bytes(7) + b"\1\x7f\3\1NULL" + bytes(48) + bytes([4, len(ready)]) + ready + b"\0\5hello")
        assert server.receive() == "received hello"
        # A peer that speaks plain ZMTP gets nowhere, and hurts nobody.
        plain = Peer("connect", "PUSH", server.at, ours=False)
        plain.do("send in plain text")
        stream.sendall(b"\0\4more")
        assert server.receive() == "received more"


def a_certificate_that_is_renewed():
    at, to, ca = tls()
    server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    client = Peer("connect", "PUSH", server.at, policy=to)
    client.do("send before")
    assert server.receive() == "received before"
    shown = lambda: ssl.get_server_certificate(server.at.removeprefix("tcp://").rsplit(":", 1))
    before = shown()
    certify(ca, "server", "127.0.0.1")
    while shown() == before:
        pass
    other = Peer("connect", "PUSH", server.at, policy=to)
    other.do("send after")
    assert server.receive() == "received after"
    client.do("send still there")
    assert server.receive() == "received still there"
    # An authority that is taken away.
    port = int(server.at.rsplit(":", 1)[1])
    while connections(port) != 2:
        pass
    trustme.CA().cert_pem.write_to_path(FOLDER / "tls/.other.pem")
    start = time.monotonic()
    os.rename(FOLDER / "tls/.other.pem", FOLDER / "tls/ca.pem")
    while connections(port):
        pass
    print(f"cut after {time.monotonic() - start:.2f} s")


def a_key_that_is_taken_away():
    at, to = wraps()
    server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    client = Peer("connect", "PUSH", server.at, policy=to)
    client.do("send before")
    assert server.receive() == "received before"
    port = int(server.at.rsplit(":", 1)[1])
    assert connections(port) == 1
    start = time.monotonic()
    (FOLDER / "clients/one").unlink()
    while connections(port):
        pass
    print(f"cut after {time.monotonic() - start:.2f} s")


def connections(port):
    """Established connections that a port of this machine has accepted."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[1].endswith(":%04X" % port) and row[3] == "01" for row in rows)


def no_key_stays_in_memory():
    at, _ = wraps()
    import zmq.utils.z85 as z85

    secrets = {"text": SERVER[1].encode(), "bytes": z85.decode(SERVER[1])}
    server = Peer("bind", "pull", "tcp://127.0.0.1:*", policy=at, c=True)
    assert "text" not in held(server.process.pid, secrets), "the file is forgotten"
    assert "bytes" in held(server.process.pid, secrets), "the test finds what is there"
    server.do("term")
    assert server.line() == "done"
    assert not held(server.process.pid, secrets)
    assert SERVER[1] not in server.said()


def main():
    faulthandler.dump_traceback_later(600, exit=True)
    passed = failed = skipped = 0
    for case in (
        ready_made_policies,
        without_a_policy_nothing_is_different,
        a_wrong_file_is_told,
        wrapped_at_both_ends,
        wrapped_against_stock_libzmq,
        wrapped_in_tls_at_both_ends,
        wrapped_in_tls_against_others,
        a_certificate_that_is_renewed,
        a_key_that_is_taken_away,
        no_key_stays_in_memory,
    ):
        if WORD not in case.__name__:
            continue
        try:
            case()
            passed += 1
            print(f"ok {case.__name__}", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"skipped {case.__name__}: {reason}")
        except Exception:
            failed += 1
            print(f"FAILED {case.__name__}")
            traceback.print_exc()
        for peer in Peer.all:
            if peer.process.poll() is None or not peer.errors.closed:
                peer.end()
    print(f"policy: {passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0


sys.exit(main())
