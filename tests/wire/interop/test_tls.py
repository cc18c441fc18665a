"""ZMTP in TLS 1.3 (tls+tcp): our library against itself, libzmq behind Python's OpenSSL, and the openssl command. Only if our library has it."""

import contextlib
import os
import pathlib
import select
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

import wire
import zmq
from bad_peers import ENDED
from cases import Skip
from sides import Ours, Theirs, wait_for_event
from wss import HOSTNAME, TRUST_PEM, authority, certify, trade

ANY = "tls+tcp://127.0.0.1:*"


def cases():
    yield "tls with themselves", itself
    for name, (ours, theirs) in {
        "PULL": (zmq.PULL, zmq.PUSH),
        "PUSH": (zmq.PUSH, zmq.PULL),
        "PUB": (zmq.PUB, zmq.SUB),
        "SUB": (zmq.SUB, zmq.PUB),
        "DEALER": (zmq.DEALER, zmq.ROUTER),
    }.items():
        for serves in (True, False):
            who = "serves" if serves else "connects"
            yield (
                f"tls: libzmq behind OpenSSL, our {name} {who}",
                lambda library, o=ours, t=theirs, s=serves: behind(library, o, t, s),
            )
    yield "tls: openssl s_client", s_client
    yield "tls: openssl s_server", s_server
    yield "tls: an older TLS", older
    yield "tls: an early end", early_end


def need(library):
    if Ours(library).lib.zmq_has(b"tls+tcp") != 1:
        raise Skip("the library was built without TLS")


def port_of(endpoint):
    return int(endpoint.rsplit(":", 1)[1])


def itself(library):
    need(library)
    ours = Ours(library)
    ca, root = authority()
    server, client = ours.socket(zmq.PAIR), ours.socket(zmq.PAIR)
    certify(server, ca, "server.example.org")
    server.set(TRUST_PEM, root)
    certify(client, ca, "client.example.org")
    client.set(TRUST_PEM, root)
    client.set(HOSTNAME, b"server.example.org")
    for peer in (server, client):
        peer.set(zmq.HEARTBEAT_IVL, 20)
    client.connect(server.bind(ANY))
    trade(client, server)
    ours.term()


def relay(accept, connect):
    """Joins a stream that is accepted to one that is connected, each in TLS or not; where it listens."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve():
        while True:
            with contextlib.suppress(OSError):
                near, far = accept(listener.accept()[0]), connect()
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def tunnel(near):
    """A socket that stands for one in TLS, which a thread of its own reads and writes: Python's does not bear two at once."""
    pair = socket.socketpair()

    def pump():
        near.setblocking(False)
        pair[0].setblocking(False)
        pending = {near: b"", pair[0]: b""}
        other = {near: pair[0], pair[0]: near}
        while True:
            readers = [one for one in other if not pending[other[one]]]
            writers = [one for one in other if pending[one]]
            ready = hasattr(near, "pending") and near.pending() and near in readers
            can_read, can_write, _ = select.select(readers, writers, [], 0 if ready else 1)
            for one in set(can_read) | ({near} if ready else set()):
                try:
                    data = one.recv(65536)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    continue
                if not data:
                    raise EOFError
                pending[other[one]] += data
            for one in can_write:
                with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                    pending[one] = pending[one][one.send(pending[one]) :]

    def run():
        with contextlib.suppress(OSError, EOFError):
            pump()
        for one in (near, pair[0]):
            one.close()

    threading.Thread(target=run, daemon=True).start()
    return pair[1]


def behind(library, our_kind, their_kind, ours_serves):
    """libzmq speaks plain tcp to a relay, and that speaks TLS to us."""
    need(library)
    ours, theirs = Ours(library), Theirs()
    ca, root = authority()
    us, them = ours.socket(our_kind), theirs.socket(their_kind)
    if ours_serves:
        certify(us, ca, "localhost")
        port = port_of(us.bind(ANY))
        context = ssl.create_default_context()
        ca.configure_trust(context)

        def connect():
            stream = socket.create_connection(("127.0.0.1", port))
            return tunnel(context.wrap_socket(stream, server_hostname="localhost"))

        them.connect("tcp://127.0.0.1:%d" % relay(lambda stream: stream, connect))
    else:
        port = port_of(them.bind("tcp://127.0.0.1:*"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(context)
        us.set(TRUST_PEM, root)
        at = relay(
            lambda stream: tunnel(context.wrap_socket(stream, server_side=True)),
            lambda: socket.create_connection(("127.0.0.1", port)),
        )
        us.connect("tls+tcp://localhost:%d" % at)
    bodies = [os.urandom(size) for size in (1, 255, 256, 16_384, 70_000)]
    sender, receiver = (us, them) if our_kind in (zmq.PUSH, zmq.PUB, zmq.DEALER) else (them, us)
    if zmq.SUB in (our_kind, their_kind):
        receiver.set(zmq.SUBSCRIBE, b"")
        while not receiver.readable(10):
            sender.send(b"are you there?")
        sender.send(b"now")
        while receiver.recv() != [b"now"]:
            pass
    for body in bodies:
        sender.send(b"a", body)
        assert receiver.recv()[-2:] == [b"a", body]


@contextlib.contextmanager
def files(ca, **names):
    """A folder with certificates as files."""
    if not shutil.which("openssl"):
        raise Skip("there is no openssl")
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        ca.cert_pem.write_to_path(folder / "ca.pem")
        for file, name in names.items():
            certificate = ca.issue_cert(name, common_name=name)
            certificate.private_key_and_cert_chain_pem.write_to_path(folder / f"{file}.pem")
        yield folder
    finally:
        shutil.rmtree(folder)


def s_client(library):
    need(library)
    ours = Ours(library)
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    pull.set(TRUST_PEM, root)
    port = port_of(pull.bind(ANY))
    with files(ca, client="alice.example.org") as folder:
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", "-verify_hostname", "localhost"]
        command += ["-CAfile", folder / "ca.pem", "-verify_return_error", "-brief"]
        # Without a certificate it is turned away. At the end of its input it would go by itself.
        refused = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        words = refused.stderr.read()
        assert b"certificate required" in words, words
        refused.wait()
        client = subprocess.Popen(
            command + ["-cert", folder / "client.pem", "-key", folder / "client.pem", "-quiet"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # A PUSH from raw bytes.
        client.stdin.write(wire.SIGNATURE + b"\3\1NULL" + bytes(48))
        ready = b"\5READY\x0bSocket-Type\0\0\0\4PUSH"
        client.stdin.write(bytes([4, len(ready)]) + ready + b"\0\5hello")
        client.stdin.flush()
        assert client.stdout.read(10) == wire.SIGNATURE
        assert pull.property_of_next(None, "User-Id") == b"alice.example.org"
        client.kill()
        assert b"TLSv1.3" in client.stderr.read()


def s_server(library):
    need(library)
    ours = Ours(library)
    ca, root = authority()
    with files(ca, server="localhost") as folder:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", folder / "server.pem", "-key", folder / "server.pem"]
        command += ["-CAfile", folder / "ca.pem", "-Verify", "1", "-verify_return_error", "-quiet", "-tls1_3"]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        push = ours.socket(zmq.PUSH)
        push.set(zmq.RECONNECT_IVL, 10)
        push.set(TRUST_PEM, root)
        certify(push, ca, "alice.example.org")
        push.connect(f"tls+tcp://localhost:{port}")
        assert server.stdout.read(10) == wire.SIGNATURE
        server.stdin.write(wire.SIGNATURE + b"\3\1NULL" + bytes(48))
        server.stdin.flush()
        greeting = server.stdout.read(54)
        assert greeting[2:6] == b"NULL", greeting
        ready = b"\5READY\x0bSocket-Type\0\0\0\4PULL"
        server.stdin.write(bytes([4, len(ready)]) + ready)
        server.stdin.flush()
        push.send(b"hello")
        said = b""
        while not said.endswith(b"\0\5hello"):
            said += server.stdout.read(1)
        server.kill()


def older(library):
    """TLS 1.2 is refused, in both directions, and the events say so."""
    need(library)
    ours = Ours(library)
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    monitor = pull.monitor()
    port = port_of(pull.bind(ANY))
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        raise AssertionError("TLS 1.2 is taken")
    except ssl.SSLError as error:
        assert "PROTOCOL_VERSION" in str(error).upper(), error
    wait_for_event(monitor, *ENDED)


def early_end(library):
    """A peer that ends TLS in the middle of a message, and one that just goes: what came whole counts."""
    need(library)
    ours = Ours(library)
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    port = port_of(pull.bind(ANY))
    context = ssl.create_default_context()
    ca.configure_trust(context)
    for polite in (True, False):
        stream = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        peer = wire.Peer(stream)
        peer.write(wire.SIGNATURE + b"\3\1NULL" + bytes(48))
        ready = b"\5READY\x0bSocket-Type\0\0\0\4PUSH"
        peer.write(bytes([4, len(ready)]) + ready + b"\0\5whole\0\5ha")
        peer.read(64)
        assert pull.recv() == [b"whole"]
        if polite:
            with contextlib.suppress(OSError):
                stream.unwrap()
        stream.close()
    push = ours.socket(zmq.PUSH)
    push.set(TRUST_PEM, root)
    push.connect(f"tls+tcp://localhost:{port}")
    push.send(b"others go on")
    assert pull.recv() == [b"others go on"]
