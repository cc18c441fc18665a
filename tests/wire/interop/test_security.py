"""PLAIN, CURVE and ZAP work between our library and libzmq 4.3.5 both ways, and stop peers that try to bypass them."""

import contextlib
import itertools
import os
import socket
import struct
import threading

import exchanges
import pytest
import zmq
import zmtp
from sides import TheirSocket, wait_for_event
from witness import ENDED, pull_with_witness
from zap import (
    CLIENT_PUBLIC, CLIENT_SECRET, SERVER_PUBLIC, SERVER_SECRET, Handler, curve, handler, no_security, null, plain, sneak,
    wrong_password, wrong_server_key,
)  # fmt: skip
from zmtp import Listener, Peer, command, frame, ready

QUIET_MS = 300

# Values of HANDSHAKE_FAILED_PROTOCOL.
INVALID_SEQUENCE, MALFORMED_HELLO, UNSPECIFIED = 0x10000002, 0x10000013, 0x10000000
CRYPTOGRAPHIC, MECHANISM_MISMATCH = 0x11000001, 0x11000002


# ---- between two libraries


def exchange_cases():
    for ours_serves, exchange, ours_first in itertools.product((True, False), exchanges.EXCHANGES, (True, False)):
        first, second, body = exchange
        who = f"{'ours' if ours_serves else 'theirs'} serves, {'ours' if ours_first else 'theirs'} first"
        name = f"CURVE, {who}: {zmq.SocketType(first).name} to {zmq.SocketType(second).name}: {body.__name__}"
        yield pytest.param(exchange, ours_first, ours_serves, id=name)


@pytest.mark.parametrize(("exchange", "ours_first", "ours_serves"), list(exchange_cases()))
def test_exchange(ours, theirs, exchange, ours_first, ours_serves):
    exchanges.run(exchange, ours, theirs, ours_first, ours_serves, "tcp://127.0.0.1:*", curve)


def their_monitor(end):
    return TheirSocket(end.socket.get_monitor_socket())


def allowed(server, client, monitor, answering):
    client.send(b"hello", b"there")
    assert (got := server.recv()) == [b"hello", b"there"], got
    server.send(b"welcome")
    assert (got := client.recv()) == [b"welcome"], got
    wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    if isinstance(answering, Handler):
        assert [address for _, address in answering.requests] == [b"127.0.0.1"], answering.requests
        assert (got := server.property_of_next(client, "User-Id")) == b"joe", got
        assert (got := server.property_of_next(client, "Group")) == b"friends", got
        assert (got := server.property_of_next(client, "Peer-Address")) == b"127.0.0.1", got
        assert (got := server.property_of_next(client, "Socket-Type")) == b"DEALER", got


def refused(server, client, monitor, answering):
    sneak(client)
    value = wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    # libzmq's PLAIN client does not recognise the ERROR command of RFC 24, because libzmq misspells it.
    misunderstood = isinstance(answering, Handler) and answering.requests[0][0] == b"PLAIN"
    assert value == (0x10000001 if misunderstood else 400), hex(value)
    assert not server.readable(QUIET_MS)


def nothing_gets_through(server, client, monitor, _answering):
    sneak(client)
    wait_for_event(monitor, *ENDED)
    assert not server.readable(QUIET_MS)


def bulk(server, client, _monitor, _answering):
    bodies = [os.urandom(size) for size in (0, 1, 221, 222, 223, 255, 256, 65_000, 65_536, 300_000)]
    for sender, receiver in ((client, server), (server, client)):
        for first, second in itertools.product(bodies, repeat=2):
            sender.send(first, second)
            assert receiver.recv() == [first, second], (len(first), len(second))
        for _ in range(20):
            sender.send(*bodies)
        for _ in range(20):
            assert receiver.recv() == bodies


def judged_cases():
    for ours_serves in (True, False):
        who = "ours" if ours_serves else "theirs"
        for name, secure, body, options in (
            (f"CURVE, {who} serves: large and small, both ways", curve, bulk, {}),
            (f"ZAP, NULL, {who} serves: allowed", null, allowed, {}),
            (f"ZAP, NULL, {who} serves: refused", null, refused, {"denied": True}),
            (f"ZAP, PLAIN, {who} serves: allowed", plain, allowed, {}),
            (f"ZAP, PLAIN, {who} serves: refused", plain, refused, {"denied": True}),
            (f"ZAP, CURVE, {who} serves: allowed", curve, allowed, {}),
            (f"ZAP, CURVE, {who} serves: refused", curve, refused, {"denied": True}),
            (f"CURVE, {who} serves: another server key", curve, nothing_gets_through, {"spoil": wrong_server_key}),
            (f"CURVE, {who} serves: no security", curve, nothing_gets_through, {"spoil": no_security}),
            (f"PLAIN, {who} serves: a wrong password", plain, refused, {"spoil": wrong_password}),
            (f"PLAIN, {who} serves: no security", plain, nothing_gets_through, {"spoil": no_security}),
        ):
            yield pytest.param(secure, ours_serves, body, options, id=name)


@pytest.mark.parametrize(("secure", "ours_serves", "body", "options"), list(judged_cases()))
def test_handler(ours, theirs, secure, ours_serves, body, options):
    """A server with a ZAP handler accepts a client of the other library with good credentials. `spoil` makes them wrong."""
    serving, visiting = (ours, theirs) if ours_serves else (theirs, ours)
    spoil = options.get("spoil")
    with handler(serving, options.get("denied", False)) as answering:
        server, visitor = serving.socket(zmq.DEALER), visiting.socket(zmq.DEALER)
        secure(server, serving.socket(zmq.DEALER) if spoil is no_security else visitor)
        if spoil:
            spoil(visitor)
        monitor = visitor.monitor() if visiting is ours else their_monitor(visitor)
        visitor.connect(server.bind("tcp://127.0.0.1:*"))
        body(server, visitor, monitor, answering)


def test_zap_a_user_id_in_the_metadata_of_a_peer_is_not_believed(ours):
    pull = ours.socket(zmq.PULL)
    peer = Peer.connect(pull.bind("tcp://127.0.0.1:*"))
    forged = (("User-Id", b"root"), ("Peer-Address", b"10.0.0.1"), ("X-mine", b"yes"))
    peer.write(zmtp.greeting() + ready("PUSH", *forged))
    peer.write(frame(b"message") * 3)
    assert pull.property_of_next(None, "User-Id") is None
    assert pull.property_of_next(None, "Peer-Address") == b"127.0.0.1"
    assert pull.property_of_next(None, "X-mine") == b"yes"


# ---- between two libraries, with an attacker in the middle


class Proxy:
    """Forwards frames between a client and a server. It sends the result of `edit(to_server, number, frame)` for each frame."""

    def __init__(self, endpoint, edit):
        self.listener, self.target, self.edit = Listener(), endpoint, edit
        self.endpoint = self.listener.endpoint
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            client, server = self.listener.accept(Peer), Peer.connect(self.target)
            for to_server, source, target in ((True, client, server), (False, server, client)):
                threading.Thread(target=self.pass_on, args=(to_server, source, target), daemon=True).start()

    def pass_on(self, to_server, source, target):
        with contextlib.suppress(OSError, EOFError):
            source.stream.settimeout(None)
            for _ in range(64):  # octet by octet, as each side waits for parts of the other side's greeting
                target.write(source.read(1))
            for number in itertools.count():
                flags, body = source.recv_frame()
                form = struct.pack(">BQ", flags, len(body)) if flags & zmtp.LONG else bytes([flags, len(body)])
                for edited in self.edit(to_server, number, form + body):
                    target.write(edited)
        with contextlib.suppress(OSError):
            target.stream.shutdown(socket.SHUT_WR)


def flip(to_server, number, at):
    def edit(direction, count, frame):
        if (direction, count) == (to_server, number):
            frame = frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1:]
        return [frame]

    return edit


def repeat(direction, count, frame):
    return [frame, frame] if direction and count == 3 else [frame]


def exchange_two():
    kept = []

    def edit(direction, count, frame):
        if direction and count == 2:
            kept.append(frame)
            return []
        return [frame, *kept] if direction and count == 3 else [frame]

    return edit


def plain_frame(direction, count, frame):
    return [frame, zmtp.frame(b"x" * 40)] if direction and count == 2 else [frame]


# The client sends HELLO, INITIATE and messages. The server sends WELCOME, READY and messages. Our server reports the code.
TAMPERINGS = [
    ("HELLO changed", flip(True, 0, 100), CRYPTOGRAPHIC),
    ("the cookie changed", flip(True, 1, 30), CRYPTOGRAPHIC),
    ("INITIATE changed", flip(True, 1, 200), CRYPTOGRAPHIC),
    ("WELCOME changed", flip(False, 0, 50), None),
    ("READY changed", flip(False, 1, 40), None),
    ("a message changed", flip(True, 2, 35), CRYPTOGRAPHIC),
    ("a nonce changed", flip(True, 2, 17), INVALID_SEQUENCE),
    ("a message repeated", repeat, INVALID_SEQUENCE),
    ("two messages exchanged", exchange_two(), INVALID_SEQUENCE),
    ("a plain frame put in", plain_frame, 0x10000001),
]


@pytest.mark.parametrize(
    ("edit", "code"), [pytest.param(edit, code, id=f"CURVE through a proxy: {name}") for name, edit, code in TAMPERINGS]
)
def test_tampering(ours, theirs, edit, code):
    server, client = ours.socket(zmq.PULL), theirs.socket(zmq.PUSH)
    curve(server, client)
    monitor = server.monitor()
    client.connect(Proxy(server.bind("tcp://127.0.0.1:*"), edit).endpoint)
    sent = [b"message %d" % number for number in range(5)]
    for body in sent:
        client.send(body)
    if code is None:
        wait_for_event(monitor, *ENDED)
    elif code == 0x10000001:
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
    else:
        assert wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) == code
    # The received messages are a prefix of the sent messages, each once.
    got = []
    while server.readable(QUIET_MS):
        got.extend(server.recv())
    assert got in [sent[:count] for count in range(4)] or (edit.__name__ == "edit" and got == sent[1:2]), got


# ---- from raw bytes


GREETING = zmtp.greeting(b"CURVE")
HELLO = bytes([1, 0]) + bytes(72) + os.urandom(32) + struct.pack(">Q", 1) + os.urandom(80)

BAD_HELLOS = [
    ("empty", command("HELLO"), MALFORMED_HELLO),
    ("one byte short", command("HELLO", HELLO[:-1]), MALFORMED_HELLO),
    ("one byte long", command("HELLO", HELLO + b"\0"), MALFORMED_HELLO),
    ("version 2", command("HELLO", b"\2" + HELLO[1:]), MALFORMED_HELLO),
    ("a key of zeros", command("HELLO", HELLO[:74] + bytes(32) + HELLO[106:]), CRYPTOGRAPHIC),
    ("a box of nothing", command("HELLO", HELLO), CRYPTOGRAPHIC),
    ("64 KiB", command("HELLO", bytes(65_000)), UNSPECIFIED),
    ("READY in its place", ready("PUSH"), 0x10000001),
    ("ERROR in its place", command("ERROR", b"\x03400"), 0x10000001),
    ("a message in its place", frame(b"sneaky"), 0x10000001),
    ("INITIATE in its place", command("INITIATE", bytes(300)), 0x10000001),
]
CUTS = (0, 1, 10, 11, 63, 64, 65, 66, 72, 140, 200, 265)


CLIENT = [(zmq.CURVE_SERVERKEY, SERVER_PUBLIC), (zmq.CURVE_PUBLICKEY, CLIENT_PUBLIC), (zmq.CURVE_SECRETKEY, CLIENT_SECRET)]


def curve_pull(ours, theirs):
    """Our PULL as a CURVE server, and a libzmq PUSH. The messages of this PUSH must continue to arrive."""
    options = [(zmq.CURVE_SERVER, 1), (zmq.CURVE_SECRETKEY, SERVER_SECRET)]
    return pull_with_witness(ours, theirs, options=options, client_options=CLIENT)


@pytest.mark.parametrize(("data", "code"), [pytest.param(data, code, id=f"CURVE, bad HELLO: {name}") for name, data, code in BAD_HELLOS])
def test_bad_hello(ours, theirs, data, code):
    with curve_pull(ours, theirs) as (pull, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write(GREETING + data)
        assert wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) == code
        assert peer.closed_by_peer()
        witness()
        assert not pull.readable(0)


@pytest.mark.parametrize("count", [pytest.param(cut, id=f"CURVE, the handshake ends after {cut} bytes") for cut in CUTS])
def test_sudden_end(ours, theirs, count):
    with curve_pull(ours, theirs) as (pull, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write((GREETING + command("HELLO", HELLO))[:count])
        witness()
        peer.close()
        wait_for_event(monitor, *ENDED)
        witness()
        assert not pull.readable(0)


def test_curve_storm_of_garbage_leaves_others_alone(ours, theirs):
    with curve_pull(ours, theirs) as (pull, endpoint, monitor, witness):
        for number in range(300):
            peer = Peer.connect(endpoint)
            with contextlib.suppress(ConnectionError):
                peer.write(GREETING + command("HELLO", HELLO[:74] + os.urandom(120))[: 66 + number])
            peer.close()
            while monitor.readable(0):
                monitor.recv()
            if number % 50 == 0:
                witness()
        assert not pull.readable(0)


def test_curve_client_meets_a_server_that_sends_garbage(ours):
    push = ours.socket(zmq.PUSH)
    for option, value in CLIENT:
        push.set(option, value)
    monitor = push.monitor()
    for data, code in (
        (command("WELCOME", bytes(160)), CRYPTOGRAPHIC),
        (command("WELCOME", bytes(159)), CRYPTOGRAPHIC),
        (command("READY", bytes(100)), CRYPTOGRAPHIC),
        (command("HELLO", HELLO), 0x10000001),
        (command("WELCOME", bytes(60_000)), UNSPECIFIED),
    ):
        listener = Listener()
        push.connect(listener.endpoint)
        peer = listener.accept(Peer)
        peer.write(GREETING)
        peer.read(64)
        flags, hello = peer.recv_frame()
        assert flags == zmtp.COMMAND and hello.startswith(b"\x05HELLO\1\0") and len(hello) == 200
        peer.write(data)
        assert wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) == code
        assert peer.closed_by_peer()
