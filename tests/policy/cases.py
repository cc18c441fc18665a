"""Unmodified programs under policies: pyzmq, Node.js and C on Tautline; at the other end pyzmq on Tautline and on libzmq 4.3.5.

cases.py LIBRARY PEER_C NODE TAUT FOLDER [WORD]: NODE is a folder with `node_modules`, or empty; TAUT is the program, or empty; only the
cases with WORD in their names. Ends with `policy: N passed, N failed, N skipped`.
"""

import contextlib
import ctypes
import errno
import faulthandler
import os
import pathlib
import re
import resource
import shutil
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

LIBRARY, PEER_C, NODE, TAUT, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], pathlib.Path(sys.argv[5])
WORD = sys.argv[6] if len(sys.argv) > 6 else ""
LANGUAGES = ["pyzmq", "C"] + (["Node.js"] if NODE else [])
HERE = pathlib.Path(__file__).parent
SERVER, CLIENT, STRANGER = (tuple(key.decode() for key in zmq.curve_keypair()) for _ in range(3))


class Skipped(Exception):
    """Why a case cannot be tried here."""


class Peer:
    """A program that runs. `policy` is the value of TAUT_POLICY; without `ours` it is on stock libzmq."""

    all = []

    def __init__(self, *arguments, policy=None, ours=True, language="pyzmq", core=False, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        if ours:
            environment["LD_PRELOAD"] = LIBRARY
        if policy is not None:
            environment["TAUT_POLICY"] = str(policy)
        environment.update(variables)
        arguments = list(arguments)
        if language == "C":
            arguments[1] = arguments[1].lower()
        elif language == "Node.js":
            environment["NODE_PATH"] = f"{NODE}/node_modules"
        program = {"pyzmq": [sys.executable, str(HERE / "peer.py")], "C": [PEER_C], "Node.js": ["node", str(HERE / "peer.js")]}[language]
        self.errors = open(FOLDER / f"errors-{len(Peer.all)}", "w+")
        self.process = subprocess.Popen(
            program + arguments,
            env=environment,
            cwd=FOLDER,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)) if core else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
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
        if self.errors.closed:
            return
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
    file("clients/one.pub", CLIENT[0] + "\n")
    at = f'[wraps.x]\nkey = "{FOLDER}/server.key"\nclients = "{FOLDER}/clients"\n'
    to = f'[wraps.x]\nkey = "{FOLDER}/client.key"\nservers = {{ "tcp://*" = "{FOLDER}/server.pub" }}\n'
    rule = '[[rules]]\ncall = "{}"\nendpoint = "tcp://*"\naction = "wrap"\nwrap = "x"\n'.format
    return file("at.toml", at + rule("bind")), file("to.toml", to + rule("connect"))


def tls():
    """The same with TLS, and certificates at both ends; and the authority."""
    if ctypes.CDLL(LIBRARY, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND).zmq_has(b"tls+tcp") != 1:
        raise Skipped("the library was built without TLS")
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
        # An end may go while the other one still speaks.
        with contextlib.suppress(OSError):
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


# What each ready-made policy, and one that wraps all of tcp, does with a bind or a connect: A(llowed), W(arned of), R(efused), wrapped (C).
CURVE_AT = ["CURVE_SERVER=1", "CURVE_SECRETKEY=" + SERVER[1]]
CURVE_TO = ["CURVE_SERVERKEY=" + SERVER[0], "CURVE_PUBLICKEY=" + CLIENT[0], "CURVE_SECRETKEY=" + CLIENT[1]]
POLICIES = ["audit", "loopback", "strict", "wrap"]
TABLE = [
    ("bind", "tcp://*:*", [], "WRRC"),
    ("bind", "tcp://127.0.0.1:*", [], "AARC"),
    ("bind", "tcp://*:*", CURVE_AT, "AAAA"),
    ("bind", "ws://*:*", [], "WRRA"),
    ("bind", "ipc://{folder}/socket", [], "WAAA"),
    ("bind", "inproc://x", [], "AAAA"),
    ("connect", "tcp://127.0.0.1:*", [], "AARC"),
    ("connect", "tcp://127.0.0.1:*", CURVE_TO, "AAAA"),
    ("connect", "ipc://{folder}/socket", [], "AARA"),
]
WORDS = {"A": "allowed", "W": "warned of", "R": "refused", "C": "wrapped"}


def a_table_of_what_happens():
    """Each line with each policy, in each language; where it is let, with each library at the other end."""
    at, to = wraps()
    both = {"bind": at, "connect": to}
    print(f"{'':44}" + "".join(f"{policy:12}" for policy in POLICIES) + "exchanged with")
    for how, endpoint, options, wanted in TABLE:
        exchanged = set()
        for policy, letter in zip(POLICIES, wanted):
            for language in LANGUAGES:
                for other in others(how, endpoint, letter):
                    row(how, endpoint, options, both[how] if policy == "wrap" else policy, letter, language, other)
                    if letter != "R" and other is not None:
                        exchanged.add("Tautline" if other else "libzmq")
                for peer in Peer.all:
                    peer.end()
        shown = f"{how} {endpoint.format(folder='...')}{' with CURVE' if options else ''}"
        print(f"{shown:44}" + "".join(f"{WORDS[letter]:12}" for letter in wanted) + (", ".join(sorted(exchanged)) or "-"), flush=True)
    print("each line the same in " + ", ".join(LANGUAGES))


def others(how, endpoint, letter):
    """Which libraries the other end can have: ours, and stock libzmq. Its wheel has no ws, and inproc has no other end."""
    if endpoint.startswith("inproc") or letter == "R" and how == "bind":
        return [None]
    return [True] if endpoint.startswith("ws") else [True, False]


def row(how, endpoint, options, policy, letter, language, other):
    folder = pathlib.Path(FOLDER / f"row-{len(Peer.all)}")
    folder.mkdir(mode=0o755)
    at = endpoint.format(folder=folder)
    curve = {"bind": CURVE_TO, "connect": CURVE_AT}[how] if options or letter == "C" else []
    if how == "connect":
        server = Peer("bind", "PULL", at, *curve, ours=other)
        at = server.at
    peer = Peer(how, "PULL" if how == "bind" else "PUSH", at, *options, policy=policy, language=language)
    what = f"{policy}: {how} {at} {options} {language}: {peer.failed} {peer.said()}"
    assert peer.failed == (errno.EACCES if letter == "R" else None), what
    told = {"W": "warns of", "R": "refuses"}.get(letter)
    assert (f"rule `{policy}:" in peer.said() and told in peer.said()) if told else not peer.said(), what
    if at.startswith("ipc://") and how == "bind" and policy in ("loopback", "strict"):
        assert stat.S_IMODE(os.stat(at.removeprefix("ipc://")).st_mode) == 0o600, what
    if other is None or letter == "R":
        return
    near, far = (peer, Peer("connect", "PUSH", peer.at.replace("0.0.0.0", "127.0.0.1"), *curve, ours=other)) if how == "bind" else (server, peer)
    far.do("send over there")
    assert near.receive() == "received over there", what


def without_a_policy_nothing_is_different():
    for ours in (False, True):
        peer = Peer("bind", "PULL", "tcp://*:*", ours=ours)
        assert peer.failed is None and not peer.said()


def a_wrong_file_is_told():
    path = file("wrong.toml", "[[rules]]\naction = \"drop\"\n")
    for language in LANGUAGES:
        peer = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=path, language=language)
        assert peer.failed == errno.EINVAL or language == "Node.js" and "Invalid argument" in peer.said(), language
        assert f"policy {path}: line 2: `action` must be one of" in peer.said(), peer.said()
    assert Peer("bind", "PULL", "tcp://127.0.0.1:*", policy="/nowhere").failed == errno.EINVAL


def wrapped_at_both_ends():
    at, to = wraps()
    for language in LANGUAGES:
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at, language=language)
        between, seen = relay(server.at)
        client = Peer("connect", "PUSH", between, policy=to, language=language)
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
    for servers, clients in (("pyzmq", "pyzmq"), ("C", "pyzmq"), ("pyzmq", "C")):
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", policy=at, language=servers)
        assert server.failed is None and server.at.startswith("tcp://"), server.said()
        between, seen = relay(server.at)
        client = Peer("connect", "PUSH", between, policy=to, language=clients)
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
    (FOLDER / "clients/one.pub").unlink()
    while connections(port):
        pass
    print(f"cut after {time.monotonic() - start:.2f} s")


def connections(port):
    """Established connections that a port of this machine has accepted."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[1].endswith(":%04X" % port) and row[3] == "01" for row in rows)


def users_see_their_topics():
    """Subscribers on either library, known by their keys, to a publisher that knows nothing of users."""
    at, _ = wraps()
    (FOLDER / "clients/one.pub").unlink(missing_ok=True)
    file("clients/alice.pub", CLIENT[0] + "\n")
    file("clients/bob.pub", STRANGER[0] + "\n")
    topics = '[[topics]]\nuser_id = "{}"\nsubscribe = "{}/"\n'.format
    policy = file("topics.toml", at.read_text() + topics("alice", "prices") + topics("bob", "news"))
    for ours in (True, False):
        publisher = Peer("bind", "XPUB", "tcp://127.0.0.1:*", policy=policy)
        for keys, topic in ((CLIENT, "prices/"), (STRANGER, "news/")):
            curve = ["CURVE_SERVERKEY=" + SERVER[0], "CURVE_PUBLICKEY=" + keys[0], "CURVE_SECRETKEY=" + keys[1]]
            refused = Peer("connect", "SUB", publisher.at, *curve, "SUBSCRIBE=secret", ours=ours)
            subscriber = Peer("connect", "SUB", publisher.at, *curve, "SUBSCRIBE=", ours=ours)
            assert publisher.receive() == f"received \x01{topic}", "narrowed; the secret one is not told"
            for sent in ("secret", "prices/1", "news/1"):
                publisher.do("send " + sent)
            assert subscriber.receive() == f"received {topic}1"
            subscriber.end()
            assert publisher.receive() == f"received \x00{topic}"
            refused.end()
        publisher.end()


SECRETS = {}


def keys_in_files():
    """A server's keys, as a policy names them, and as an option that the program reads from a file."""
    import zmq.utils.z85 as z85

    at, _ = wraps()
    secret = file("secret.txt", SERVER[1])
    SECRETS.update({"text": SERVER[1].encode(), "bytes": z85.decode(SERVER[1])})
    yield "a wrap", at, []
    yield "options", None, ["CURVE_SERVER=1", f"CURVE_SECRETKEY=@{secret}"]


def found_in(path):
    data = path.read_bytes()
    return {name for name, secret in SECRETS.items() if secret in data}


def no_key_stays_in_memory():
    for how, policy, options in keys_in_files():
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", *options, policy=policy, language="C")
        assert "text" not in held(server.process.pid, SECRETS), "the file is forgotten"
        assert "bytes" in held(server.process.pid, SECRETS), "the test finds what is there"
        server.do("term")
        assert server.line() == "done"
        assert not held(server.process.pid, SECRETS), how
        assert SERVER[1] not in server.said()


def no_key_is_in_a_core_file():
    """By gcore, which has all memory of the process, also what the kernel would leave out."""
    if not shutil.which("gcore"):
        raise Skipped("there is no gcore: apt-get install gdb")
    for how, policy, options in keys_in_files():
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", *options, policy=policy, language="C")
        client = Peer("connect", "PUSH", server.at, *CURVE_TO)
        client.do("send a message")
        assert server.receive() == "received a message"
        assert found_in(core_of(server, "busy")) == {"bytes"}, "the test finds what is there"
        client.end()
        server.do("term")
        assert server.line() == "done"
        assert not found_in(core_of(server, "ended")), how


def core_of(peer, name):
    subprocess.run(["gcore", "-a", "-o", str(FOLDER / name), str(peer.process.pid)], check=True, capture_output=True)
    return FOLDER / f"{name}.{peer.process.pid}"


def no_key_is_in_the_core_file_of_a_crash():
    """As the kernel writes it, where it writes files."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern:
        raise Skipped(f"the kernel does not write core files to the folder of the program: core_pattern is {pattern}")
    for how, policy, options in keys_in_files():
        for stale in FOLDER.glob("core*"):
            stale.unlink()
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", *options, policy=policy, language="C", core=True)
        server.do("term")
        assert server.line() == "done"
        server.do("abort")
        assert server.process.wait() == -6
        cores = list(FOLDER.glob("core*"))
        if not cores:
            raise Skipped("the kernel has written no core file")
        assert not found_in(cores[0]), how


def no_key_is_shown():
    """The observed file while keys are in use, what the program tells, and what `taut` shows of it."""
    runtime = FOLDER / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    for how, policy, options in keys_in_files():
        server = Peer("bind", "PULL", "tcp://127.0.0.1:*", *options, policy=policy, language="C", TAUT_OBSERVE="1", XDG_RUNTIME_DIR=str(runtime))
        stranger = Peer("connect", "PUSH", server.at, ours=False)
        client = Peer("connect", "PUSH", server.at, *CURVE_TO)
        client.do("send a message")
        assert server.receive() == "received a message"
        pid = str(server.process.pid)
        observed = runtime / "tautline" / pid
        while b"CURVE" not in observed.read_bytes():
            pass
        assert not found_in(observed), how
        for arguments in (["ps"], ["show", pid], ["show", pid, "--json"], ["metrics", "--peers"], ["doctor", pid, "--for", "1"]) if TAUT else ():
            environment = dict(os.environ, XDG_RUNTIME_DIR=str(runtime))
            shown = subprocess.run([TAUT] + arguments, env=environment, capture_output=True)
            assert pid.encode() in shown.stdout + shown.stderr or arguments[0] != "show", shown
            assert not any(secret in shown.stdout + shown.stderr for secret in SECRETS.values()), arguments
        assert SERVER[1] not in server.said()
        for peer in (stranger, client, server):
            peer.end()


def main():
    faulthandler.dump_traceback_later(600, exit=True)
    passed = failed = skipped = 0
    for case in (
        a_table_of_what_happens,
        without_a_policy_nothing_is_different,
        a_wrong_file_is_told,
        wrapped_at_both_ends,
        wrapped_against_stock_libzmq,
        wrapped_in_tls_at_both_ends,
        wrapped_in_tls_against_others,
        a_certificate_that_is_renewed,
        a_key_that_is_taken_away,
        users_see_their_topics,
        no_key_stays_in_memory,
        no_key_is_in_a_core_file,
        no_key_is_in_the_core_file_of_a_crash,
        no_key_is_shown,
    ):
        if WORD not in case.__name__:
            continue
        try:
            case()
            passed += 1
            print(f"ok {case.__name__}", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"skipped {case.__name__}: {why}", flush=True)
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
