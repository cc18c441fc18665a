"""PLAIN, CURVE and ZAP between our library and libzmq 4.3.5, both ways round, and peers that try to get around them."""

import contextlib
import itertools
import os
import socket
import struct
import threading

import wire
import zmq
from bad_peers import ENDED, command, pull_with_witness
from patterns import EXCHANGES
from sides import Failure, Ours, Theirs, TheirSocket, wait_for_event
from wire import Listener, Peer, Zmtp3
from zmq.auth.thread import ThreadAuthenticator

DOMAIN = b"home"
SERVER_PUBLIC, SERVER_SECRET = zmq.curve_keypair()
CLIENT_PUBLIC, CLIENT_SECRET = zmq.curve_keypair()
OTHER_PUBLIC, OTHER_SECRET = zmq.curve_keypair()
QUIET_MS = 300

# The values of HANDSHAKE_FAILED_PROTOCOL.
INVALID_SEQUENCE, MALFORMED_HELLO, UNSPECIFIED = 0x10000002, 0x10000013, 0x10000000
CRYPTOGRAPHIC, MECHANISM_MISMATCH = 0x11000001, 0x11000002


def cases():
    for ours_serves in (True, False):
        who = "ours" if ours_serves else "theirs"
        for first, second, body in EXCHANGES:
            name = f"{zmq.SocketType(first).name} to {zmq.SocketType(second).name}: {body.__name__}"
            for ours_first in (True, False):
                side = "ours first" if ours_first else "theirs first"
                yield f"CURVE, {who} serves, {side}: {name}", exchange(first, second, body, ours_first, ours_serves)
        yield f"CURVE, {who} serves: large and small, both ways", judged(curve, ours_serves, bulk)
        for name, secure in (("NULL", null), ("PLAIN", plain), ("CURVE", curve)):
            yield f"ZAP, {name}, {who} serves: allowed", judged(secure, ours_serves, allowed)
            yield f"ZAP, {name}, {who} serves: refused", judged(secure, ours_serves, refused, denied=True)
        for name, wrong in (("another server key", wrong_server_key), ("no security", no_security)):
            yield f"CURVE, {who} serves: {name}", judged(curve, ours_serves, nothing_gets_through, client=wrong)
        yield f"PLAIN, {who} serves: a wrong password", judged(plain, ours_serves, refused, client=wrong_password)
        yield f"PLAIN, {who} serves: no security", judged(plain, ours_serves, nothing_gets_through, client=no_security)
    yield "ZAP: a User-Id in the peer's own metadata is not believed", forged_user_id
    for name, edit, code in TAMPERINGS:
        yield f"CURVE through a proxy: {name}", tampered(edit, code)
    for name, data, code in BAD_HELLOS:
        yield f"CURVE, bad HELLO: {name}", bad_hello(data, code)
    for cut in CUTS:
        yield f"CURVE, the handshake ends after {cut} bytes", cut_short(cut)
    yield "CURVE, a storm of garbage: others go on", storm
    yield "CURVE, our client meets a server that sends garbage", garbage_server


# ---- who is who


def null(server, _client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)


def plain(server, client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)
    server.set(zmq.PLAIN_SERVER, 1)
    client.set(zmq.PLAIN_USERNAME, b"admin")
    client.set(zmq.PLAIN_PASSWORD, b"secret")


def curve(server, client):
    server.set(zmq.ZAP_DOMAIN, DOMAIN)
    server.set(zmq.CURVE_SERVER, 1)
    server.set(zmq.CURVE_SECRETKEY, SERVER_SECRET)
    client.set(zmq.CURVE_SERVERKEY, SERVER_PUBLIC)
    client.set(zmq.CURVE_PUBLICKEY, CLIENT_PUBLIC)
    client.set(zmq.CURVE_SECRETKEY, CLIENT_SECRET)


def wrong_server_key(client):
    client.set(zmq.CURVE_SERVERKEY, OTHER_PUBLIC)


def wrong_password(client):
    client.set(zmq.PLAIN_PASSWORD, b"guess")


def no_security(_client):
    pass


class Handler:
    """A ZAP handler for the sockets of one of our contexts: lets in by address, password or key."""

    def __init__(self, side, denied=False):
        self.denied, self.requests, self.stopping = denied, [], False
        self.socket = side.socket(zmq.REP)
        self.socket.bind("inproc://zeromq.zap.01")
        self.socket.set(zmq.RCVTIMEO, 50)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping:
            if not self.socket.readable(50):
                continue
            version, sequence, domain, address, _routing_id, mechanism, *credentials = self.socket.recv()
            assert (version, domain) == (b"1.0", DOMAIN), (version, domain)
            good = {b"NULL": [], b"PLAIN": [b"admin", b"secret"]}.get(mechanism, [key(CLIENT_PUBLIC)])
            self.requests.append((mechanism, address))
            if self.denied or credentials != good:
                self.socket.send(version, sequence, b"400", b"no", b"", b"")
            else:
                self.socket.send(version, sequence, b"200", b"OK", b"joe", wire.metadata(("Group", b"friends")))

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.socket.close()


def key(text):
    from zmq.utils import z85

    return z85.decode(text)


@contextlib.contextmanager
def handler(side, denied):
    """pyzmq's own authenticator for libzmq, ours for ours."""
    if isinstance(side, Ours):
        answering = Handler(side, denied)
        yield answering
    else:
        answering = ThreadAuthenticator(side.context)
        answering.start()
        answering.deny("127.0.0.1") if denied else answering.allow("127.0.0.1")
        answering.configure_plain(DOMAIN.decode(), {"admin": "secret"})
        answering.configure_curve_callback(DOMAIN.decode(), Credentials())
        yield answering
    answering.stop()


class Credentials:
    def callback(self, _domain, key):
        return key == CLIENT_PUBLIC


# ---- between two libraries


def exchange(first, second, body, ours_first, ours_serves):
    def run(library):
        ours, theirs = Ours(library), Theirs()
        sides = (ours, theirs) if ours_first else (theirs, ours)
        a, b = sides[0].socket(first), sides[1].socket(second)
        for end, kind, routing_id in ((a, first, b"first"), (b, second, b"second")):
            if kind in (zmq.ROUTER, zmq.DEALER):
                end.set(zmq.ROUTING_ID, routing_id)
            if kind == zmq.ROUTER:
                end.set(zmq.ROUTER_MANDATORY, 1)
            if kind in (zmq.PUB, zmq.XPUB, zmq.SUB, zmq.XSUB):
                end.set(zmq.SNDHWM, 0)
                end.set(zmq.RCVHWM, 0)
        server, client = (a, b) if ours_first == ours_serves else (b, a)
        curve(server, client)
        client.connect(server.bind("tcp://127.0.0.1:*"))
        body(a, b)
        for end in (a, b):
            end.close()
        ours.term()
        theirs.term()

    return run


def judged(secure, ours_serves, body, denied=False, client=None):
    """A server with a handler, and a client of the other library."""

    def run(library):
        ours, theirs = Ours(library), Theirs()
        serving, visiting = (ours, theirs) if ours_serves else (theirs, ours)
        with handler(serving, denied) as answering:
            server, visitor = serving.socket(zmq.DEALER), visiting.socket(zmq.DEALER)
            if client in (None, wrong_server_key, wrong_password):
                secure(server, visitor)
            else:
                secure(server, serving.socket(zmq.DEALER))
            if client:
                client(visitor)
            monitor = visitor.monitor() if isinstance(visiting, Ours) else their_monitor(visitor)
            visitor.connect(server.bind("tcp://127.0.0.1:*"))
            body(server, visitor, monitor, answering)
            visitor.close()
            server.close()

    return run


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


def sneak(client):
    """Tries to send; a client that was refused already has nobody to send to."""
    client.set(zmq.SNDTIMEO, 0)
    with contextlib.suppress(Failure, zmq.Again):
        client.send(b"sneaky")


def refused(server, client, monitor, answering):
    sneak(client)
    value = wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
    # libzmq's PLAIN client does not know the ERROR command of RFC 24: its own is misspelt.
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


def forged_user_id(library):
    ours = Ours(library)
    pull = ours.socket(zmq.PULL)
    peer = Peer.connect(pull.bind("tcp://127.0.0.1:*"))
    forged = (("Socket-Type", b"PUSH"), ("User-Id", b"root"), ("Peer-Address", b"10.0.0.1"), ("X-mine", b"yes"))
    peer.write(Zmtp3.greeting(None, 1) + command("READY", wire.metadata(*forged)))
    peer.write(wire.frame(b"message") * 3)
    assert pull.property_of_next(None, "User-Id") is None
    assert pull.property_of_next(None, "Peer-Address") == b"127.0.0.1"
    assert pull.property_of_next(None, "X-mine") == b"yes"


# ---- between two libraries, with somebody in the middle


class Proxy:
    """Passes on what a client and a server say, frame by frame, as `edit(to_server, number, frame)` likes it."""

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
            for _ in range(64):  # octet by octet: each side waits for the other's
                target.write(source.read(1))
            for number in itertools.count():
                flags, body = source.recv_frame()
                form = struct.pack(">BQ", flags, len(body)) if flags & wire.LONG else bytes([flags, len(body)])
                for frame in self.edit(to_server, number, form + body):
                    target.write(frame)
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
    return [frame, wire.frame(b"x" * 40)] if direction and count == 2 else [frame]


# To the server go HELLO, INITIATE, messages; to the client WELCOME, READY, messages. The code is what our server reports.
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


def tampered(edit, code):
    def run(library):
        ours, theirs = Ours(library), Theirs()
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
        # What came through is a beginning of what was sent, each once; never anything else.
        got = []
        while server.readable(QUIET_MS):
            got.extend(server.recv())
        assert got in [sent[:count] for count in range(4)] or (edit.__name__ == "edit" and got == sent[1:2]), got

    return run


# ---- from raw bytes


GREETING = Zmtp3.greeting(None, 1, b"CURVE")
HELLO = bytes([1, 0]) + bytes(72) + os.urandom(32) + struct.pack(">Q", 1) + os.urandom(80)

BAD_HELLOS = [
    ("empty", command("HELLO"), MALFORMED_HELLO),
    ("one byte short", command("HELLO", HELLO[:-1]), MALFORMED_HELLO),
    ("one byte long", command("HELLO", HELLO + b"\0"), MALFORMED_HELLO),
    ("version 2", command("HELLO", b"\2" + HELLO[1:]), MALFORMED_HELLO),
    ("a key of zeros", command("HELLO", HELLO[:74] + bytes(32) + HELLO[106:]), CRYPTOGRAPHIC),
    ("a box of nothing", command("HELLO", HELLO), CRYPTOGRAPHIC),
    ("64 KiB", command("HELLO", bytes(65_000)), UNSPECIFIED),
    ("READY in its place", command("READY", wire.metadata(("Socket-Type", b"PUSH"))), 0x10000001),
    ("ERROR in its place", command("ERROR", b"\x03400"), 0x10000001),
    ("a message in its place", wire.frame(b"sneaky"), 0x10000001),
    ("INITIATE in its place", command("INITIATE", bytes(300)), 0x10000001),
]
CUTS = (0, 1, 10, 11, 63, 64, 65, 66, 72, 140, 200, 265)


@contextlib.contextmanager
def curve_pull(library):
    """Our PULL as a CURVE server, and a libzmq PUSH whose messages must keep coming through."""
    options = [(zmq.CURVE_SERVER, 1), (zmq.CURVE_SECRETKEY, SERVER_SECRET)]
    client = [(zmq.CURVE_SERVERKEY, SERVER_PUBLIC), (zmq.CURVE_PUBLICKEY, CLIENT_PUBLIC),
              (zmq.CURVE_SECRETKEY, CLIENT_SECRET)]
    with pull_with_witness(library, options, client) as parts:
        yield parts


def bad_hello(data, code):
    def run(library):
        with curve_pull(library) as (pull, endpoint, monitor, witness):
            peer = Peer.connect(endpoint)
            peer.write(GREETING + data)
            assert wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) == code
            assert peer.closed_by_peer()
            witness()
            assert not pull.readable(0)

    return run


def cut_short(count):
    def run(library):
        with curve_pull(library) as (pull, endpoint, monitor, witness):
            peer = Peer.connect(endpoint)
            peer.write((GREETING + command("HELLO", HELLO))[:count])
            witness()
            peer.close()
            wait_for_event(monitor, *ENDED)
            witness()
            assert not pull.readable(0)

    return run


def storm(library):
    with curve_pull(library) as (pull, endpoint, monitor, witness):
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


def garbage_server(library):
    ours = Ours(library)
    push = ours.socket(zmq.PUSH)
    for option, value in ((zmq.CURVE_SERVERKEY, SERVER_PUBLIC), (zmq.CURVE_PUBLICKEY, CLIENT_PUBLIC),
                          (zmq.CURVE_SECRETKEY, CLIENT_SECRET)):
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
        assert flags == wire.COMMAND and hello.startswith(b"\x05HELLO\1\0") and len(hello) == 200
        peer.write(data)
        assert wait_for_event(monitor, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) == code
        assert peer.closed_by_peer()
