"""ZMTP in TLS 1.3 (tls+tcp) works with our library, libzmq behind Python's OpenSSL, and the openssl command. Needs a build with TLS."""

import contextlib
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
import zmq
import zmtp
from certificates import HOSTNAME, TRUST_PEM, authority, certify, trade
from sides import wait_for_event
from witness import ENDED

ANY = "tls+tcp://127.0.0.1:*"


@pytest.fixture(autouse=True)
def needs_tls(ours):
    if ours.lib.zmq_has(b"tls+tcp") != 1:
        pytest.skip("the library was built without TLS")


def port_of(endpoint):
    return int(endpoint.rsplit(":", 1)[1])


def test_tls_with_themselves(ours):
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


def relay(accept, connect):
    """Starts a relay from accepted to connected streams. `accept` and `connect` may add TLS. Returns the port of the relay."""
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
    """Returns a plain socket that stands for a TLS socket. One thread reads and writes TLS, as Python's TLS supports only one thread."""
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


@pytest.mark.parametrize(
    ("our_kind", "their_kind", "ours_serves"),
    [
        pytest.param(ours, theirs, serves, id=f"tls: libzmq behind OpenSSL, our {ours.name} {'serves' if serves else 'connects'}")
        for ours, theirs in (
            (zmq.PULL, zmq.PUSH),
            (zmq.PUSH, zmq.PULL),
            (zmq.PUB, zmq.SUB),
            (zmq.SUB, zmq.PUB),
            (zmq.DEALER, zmq.ROUTER),
        )
        for serves in (True, False)
    ],
)
def test_exchange(ours, theirs, our_kind, their_kind, ours_serves):
    """libzmq exchanges messages with us through a relay, which uses plain tcp towards libzmq and TLS towards us."""
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


@pytest.fixture
def openssl():
    """Returns a function that starts the openssl command. The command ends with the case."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl command")
    started = []

    def start(*words):
        started.append(subprocess.Popen(["openssl", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def files(ca, folder, name):
    """Writes the certificate of an authority, and a certificate with its key for `name`."""
    ca.cert_pem.write_to_path(folder / "ca.pem")
    certificate = ca.issue_cert(name, common_name=name)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "own.pem")
    return folder / "ca.pem", folder / "own.pem"


def test_openssl_s_client(ours, openssl, tmp_path):
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    pull.set(TRUST_PEM, root)
    port = port_of(pull.bind(ANY))
    trusted, own = files(ca, tmp_path, "alice.example.org")
    words = ["s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost", "-verify_hostname", "localhost"]
    words += ["-CAfile", trusted, "-verify_return_error", "-brief"]
    # A client without a certificate is refused. Its input stays open, because the command would exit at the end of its input.
    refused = openssl(*words).stderr.read()
    assert b"certificate required" in refused, refused
    client = openssl(*words, "-cert", own, "-key", own, "-quiet")
    # A PUSH from raw bytes.
    client.stdin.write(zmtp.greeting() + zmtp.ready("PUSH") + zmtp.frame(b"hello"))
    client.stdin.flush()
    assert client.stdout.read(10) == zmtp.SIGNATURE
    assert pull.property_of_next(None, "User-Id") == b"alice.example.org"
    client.kill()
    assert b"TLSv1.3" in client.stderr.read()


def test_openssl_s_server(ours, openssl, tmp_path):
    ca, root = authority()
    trusted, own = files(ca, tmp_path, "localhost")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["-CAfile", trusted, "-Verify", "1", "-verify_return_error", "-quiet", "-tls1_3"]
    server = openssl("s_server", "-accept", f"127.0.0.1:{port}", "-cert", own, "-key", own, *words)
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    push.set(TRUST_PEM, root)
    certify(push, ca, "alice.example.org")
    push.connect(f"tls+tcp://localhost:{port}")
    assert server.stdout.read(10) == zmtp.SIGNATURE
    server.stdin.write(zmtp.greeting())
    server.stdin.flush()
    greeting = server.stdout.read(54)
    assert greeting[2:6] == b"NULL", greeting
    server.stdin.write(zmtp.ready("PULL"))
    server.stdin.flush()
    push.send(b"hello")
    said = b""
    while not said.endswith(zmtp.frame(b"hello")):
        said += server.stdout.read(1)


def test_tls_older_than_1_3_is_refused(ours):
    """Our server refuses TLS 1.2, and an event reports it."""
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    monitor = pull.monitor()
    port = port_of(pull.bind(ANY))
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="(?i)protocol_version"):
        context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
    wait_for_event(monitor, *ENDED)


def test_tls_early_end(ours):
    """If a peer ends TLS in the middle of a message, or disconnects without an end of TLS, its complete messages are delivered."""
    ca, root = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "localhost")
    port = port_of(pull.bind(ANY))
    context = ssl.create_default_context()
    ca.configure_trust(context)
    for polite in (True, False):
        stream = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        peer = zmtp.Peer(stream)
        peer.write(zmtp.greeting() + zmtp.ready("PUSH") + zmtp.frame(b"whole") + zmtp.frame(b"halve")[:4])
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
