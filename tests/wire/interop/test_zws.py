"""WebSocket (ZWS 2.0): our library against itself, libzmq, the `websockets` package, and peers from raw bytes."""

import base64
import contextlib
import hashlib
import itertools
import os
import pathlib
import re
import socket
import struct
import threading

import patterns
import websockets.headers
import websockets.sync.client
import websockets.sync.server
import wire
import zmq
from bad_peers import BOUND, ENDED, peak_memory
from security import sneak
from sides import Ours, own_tcp, wait_for_event
from wire import Peer

# libzmq with WebSocket, which the one in the pyzmq wheel has not: tests/wire/upstream builds one.
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(__file__).parents[3] / "target")
BUILT = TARGET / "upstream/draft/lib/libzmq.so.5"
REFERENCE = os.environ.get("TAUT_REFERENCE_WS") or (str(BUILT) if BUILT.exists() else None)

# No token of HTTP has a slash, but RFC 45 puts one into the names of its protocols. Browsers only do ZWS2.0.
websockets.headers._token_re = re.compile("(?:" + websockets.headers._token_re.pattern + "|/)+")

BINARY, PING, PONG, CLOSE = 2, 9, 10, 8
ANY = "ws://127.0.0.1:*/zmq"  # libzmq cannot bind to a path with more slashes


def cases():
    pairs = [("themselves", None)] + ([("libzmq", REFERENCE)] if REFERENCE else [])
    for (name, other), (first, second, body) in itertools.product(pairs, patterns.EXCHANGES):
        for ours_first, ours_binds in itertools.product((True, False), (True, False)) if other else [(True, True)]:
            names = [zmq.SocketType(kind).name for kind in (first, second)]
            names[0 if ours_first else 1] += " (ours)"
            binds = "ours" if ours_binds else "theirs"
            title = f"ws with {name}: {' to '.join(names)}, {binds} binds: {body.__name__}"
            make = patterns.case(first, second, body, ours_first, ours_binds, "ws", lambda library, other=other: Ours(other or library))
            yield title, make
        if other and body is patterns.EXCHANGES[0][2]:
            yield "ws with libzmq: heartbeats of both", lambda library, other=other: heartbeats(library, other)
    others = [("themselves", None)] + ([("libzmq", REFERENCE)] if REFERENCE else [])
    for (name, other), mechanism, ours_serves in itertools.product(others, (plain, curve), (True, False)):
        yield f"ws with {name}: {mechanism.__name__}, {'ours' if ours_serves else 'theirs'} serves", (
            lambda library, arguments=(other, mechanism, ours_serves): secured(library, *arguments)
        )
    yield "ws: heartbeats", lambda library: heartbeats(library, library)
    yield "ws: names of endpoints", names_of_endpoints
    yield "ws: what there is no WebSocket for", not_for_streams
    yield "ws: the other end restarts", restart
    yield "ws: a browser-like client", browser_client
    yield "ws: a browser-like publisher's reader", browser_subscriber
    yield "ws: we connect to a browser-like server", browser_server
    for piece in (1, 7, 1000):
        yield f"ws: a client in pieces of {piece}", lambda library, piece=piece: pieces(library, piece)
    yield "ws: fragments, pings and goodbye", fragments
    yield "ws: we are told to go", told_to_go
    yield "ws: 503, and then a server", unavailable
    for name, data in BAD_OPENINGS.items():
        yield f"ws: bad opening: {name}", lambda library, data=data: bad_opening(library, data)
    for name, data in BAD_FRAMES.items():
        yield f"ws: bad traffic: {name}", lambda library, data=data: bad_frames(library, data)
    yield "ws: a slow opening and HANDSHAKE_IVL", slow_opening
    yield "ws: MAXMSGSIZE", too_large
    yield "ws: a flood of pings", flood


def frame(opcode, payload, first=0x80):
    """As a client sends it."""
    mask = os.urandom(4)
    length = bytes((0x80 | len(payload),)) if len(payload) < 126 else struct.pack(">BH", 0xFE, len(payload))
    return bytes((first | opcode,)) + length + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))


def request(protocol="ZWS2.0", **changes):
    headers = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": protocol,
        "Sec-WebSocket-Version": "13",
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return ("GET / HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items() if v) + "\r\n").encode()


class Raw(Peer):
    """A WebSocket client from raw bytes."""

    @classmethod
    def connect(cls, endpoint):
        host, port = endpoint.removeprefix("ws://").split("/")[0].rsplit(":", 1)
        return cls(socket.create_connection((host, int(port)), wire.TIMEOUT_S))

    def open(self, protocol="ZWS2.0"):
        self.write(request(protocol))
        head = self.read_head()
        assert head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
        return self

    def read_head(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.read(1)
        return head

    def recv_frame(self):
        first, length = self.read(2)
        if length == 126:
            length = struct.unpack(">H", self.read(2))[0]
        return first, self.read(length)


def greet(endpoint, routing_id=b""):
    """A client by the bare protocol, past the routing ids."""
    peer = Raw.connect(endpoint).open()
    peer.write(frame(BINARY, b"\0" + routing_id))
    assert peer.recv_frame()[0] == 0x80 | BINARY
    return peer


def heartbeats(library, other):
    for settings in itertools.product((True, False), repeat=2):
        sides = Ours(library), Ours(other)
        a, b = (side.socket(zmq.PAIR) for side in sides)
        for peer, wanted in zip((a, b), settings):
            if wanted:
                peer.set(zmq.HEARTBEAT_IVL, 20)
                peer.set(zmq.HEARTBEAT_TIMEOUT, 2000)
            peer.set(zmq.RECONNECT_IVL, -1)
        monitor = a.monitor()
        b.connect(a.bind(ANY))
        wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
        assert not monitor.readable(200)
        b.send(b"still", b"there")
        assert a.recv() == [b"still", b"there"]
        for thing in (a, b, monitor):
            thing.close()
        for side in sides:
            side.term()


def plain(server, client, password=b"secret"):
    server.set(zmq.PLAIN_SERVER, 1)
    client.set(zmq.PLAIN_USERNAME, b"me")
    client.set(zmq.PLAIN_PASSWORD, password)


def curve(server, client, password=b"secret"):
    public, secret = zmq.curve_keypair()
    client_public, client_secret = zmq.curve_keypair()
    server.set(zmq.CURVE_SERVER, 1)
    server.set(zmq.CURVE_SECRETKEY, secret)
    client.set(zmq.CURVE_SERVERKEY, public if password == b"secret" else client_public)
    client.set(zmq.CURVE_PUBLICKEY, client_public)
    client.set(zmq.CURVE_SECRETKEY, client_secret)


def secured(library, other, mechanism, ours_serves):
    """Both ways, subscriptions and PINGs too; then with credentials that are no good."""
    sides = Ours(library), Ours(other or library)
    serving, asking = sides if ours_serves else sides[::-1]
    handler = serving.socket(zmq.REP)
    handler.set(zmq.RCVTIMEO, -1)
    handler.bind("inproc://zeromq.zap.01")

    def judge():
        while True:
            version, number, _domain, _address, _id, name, *credentials = handler.recv()
            good = name == b"CURVE" or credentials == [b"me", b"secret"]
            handler.send(version, number, b"200" if good else b"400", b"", b"", b"")

    threading.Thread(target=judge, daemon=True).start()
    for kinds in ((zmq.PAIR, zmq.PAIR), (zmq.XPUB, zmq.SUB), (zmq.SUB, zmq.XPUB)):
        server, client = serving.socket(kinds[0]), asking.socket(kinds[1])
        mechanism(server, client)
        for peer in (server, client):
            peer.set(zmq.HEARTBEAT_IVL, 20)
            peer.set(zmq.HEARTBEAT_TIMEOUT, 3000)
        client.connect(server.bind(ANY))
        if kinds[0] == kinds[1]:
            for size in (0, 1, 255, 70_000):
                client.send(b"a", bytes(size))
                assert server.recv() == [b"a", bytes(size)]
                server.send(bytes(size), b"b")
                assert client.recv() == [bytes(size), b"b"]
        else:
            xpub, sub = (server, client) if kinds[0] == zmq.XPUB else (client, server)
            sub.set(zmq.SUBSCRIBE, b"topic")
            while not xpub.readable(0):
                sub.readable(20)  # a bound socket subscribes when its owner lets it hear of the peer
            assert xpub.recv() == [b"\x01topic"]
            xpub.send(b"other")
            xpub.send(b"topic", b"yes")
            assert sub.recv() == [b"topic", b"yes"]
        server.close()
        client.close()
    server, client = serving.socket(zmq.PULL), asking.socket(zmq.PUSH)
    mechanism(server, client, b"guess")
    client.connect(server.bind(ANY))
    sneak(client)
    assert not server.readable(300)


def names_of_endpoints(library):
    ours = Ours(library)
    for text, start, path in (
        ("ws://127.0.0.1:*", "ws://127.0.0.1:", "/"),
        ("ws://*:*/a/b?c=d", "ws://0.0.0.0:", "/a/b?c=d"),
        ("ws://lo:*/", "ws://127.0.0.1:", "/"),
    ):
        pull = ours.socket(zmq.PULL)
        endpoint = pull.bind(text)
        assert endpoint.startswith(start) and endpoint.endswith(path), endpoint
        pull.call("zmq_unbind", endpoint.encode())
        pull.bind(endpoint)  # the address is free at once
        pull.close()
    for text in ("ws://127.0.0.1", "ws:///x", "ws://127.0.0.1:*/a b", "ws://127.0.0.1:*/a\r\nX: y", "ws://127.0.0.1:*/\u00e4"):
        for call in ("zmq_bind", "zmq_connect"):
            pull = ours.socket(zmq.PULL)
            assert pull.lib[call](pull.handle, text.encode()) == -1, text
            assert ours.lib.zmq_errno() == 22, text
            pull.close()
    ours.term()


def not_for_streams(library):
    ours = Ours(library)
    stream = ours.socket(zmq.STREAM)
    for call in ("zmq_bind", "zmq_connect"):
        assert stream.lib[call](stream.handle, b"ws://127.0.0.1:5555") == -1
        assert ours.lib.zmq_errno() == 156384712 + 52  # ENOCOMPATPROTO
    stream.close()
    ours.term()


def restart(library):
    ours = Ours(library)
    push, pull = ours.socket(zmq.PUSH), ours.socket(zmq.PULL)
    push.set(zmq.RECONNECT_IVL, 10)
    endpoint = pull.bind(own_tcp().replace("tcp", "ws"))
    push.connect(endpoint)
    push.send(b"one")
    assert pull.recv() == [b"one"]
    pull.close()
    pull = ours.socket(zmq.PULL)
    pull.bind(endpoint)
    received = set()
    while b"last" not in received:
        push.send(b"last")
        if pull.readable(20):
            received.update(pull.recv())
    push.close()
    pull.close()
    ours.term()


def browser_client(library):
    ours = Ours(library)
    router = ours.socket(zmq.ROUTER)
    endpoint = router.bind(ANY)
    with websockets.sync.client.connect(endpoint, subprotocols=["ZWS2.0"], max_size=None) as client:
        assert client.subprotocol == "ZWS2.0"
        client.send(b"\0browser")
        assert client.recv() == b"\0"
        client.send(b"\x01one")
        client.send([b"\0", b"tw", b"o"])  # in fragments
        assert router.recv() == [b"browser", b"one", b"two"]
        for size in (0, 1, 124, 125, 126, 65_534, 65_535, 65_536, 1 << 20):
            body = os.urandom(size)
            client.send(b"\0" + body)
            assert router.recv() == [b"browser", body]
            router.send(b"browser", b"part", body)
            assert client.recv() == b"\x01part"
            assert client.recv() == b"\0" + body
        client.ping(b"anybody there?").wait(5)
    # It has closed the connection in order, or waiting for our close frame would have failed.
    assert client.close_code == 1000
    with websockets.sync.client.connect(endpoint, subprotocols=["ZWS2.0/NULL"]) as client:
        client.send(b"\x02\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x02me")
        assert client.recv().startswith(b"\x02\x05READY\x0bSocket-Type\0\0\0\x06ROUTER")
        client.send(b"\0hello")
        assert router.recv() == [b"me", b"hello"]
        router.close()
        with contextlib.suppress(websockets.ConnectionClosedOK):
            client.recv()
            raise AssertionError("something came")
        assert client.close_code == 1000
    ours.term()


def browser_subscriber(library):
    ours = Ours(library)
    xpub = ours.socket(zmq.XPUB)
    endpoint = xpub.bind(ANY)
    with websockets.sync.client.connect(endpoint, subprotocols=["ZWS2.0/NULL", "ZWS2.0"]) as client:
        client.send(b"\x02\x05READY\x0bSocket-Type\0\0\0\x03SUB")
        client.recv()
        client.send(b"\0\x01topic")
        assert xpub.recv() == [b"\x01topic"]
        xpub.send(b"other", b"no")
        xpub.send(b"topic", b"yes")
        assert [client.recv(), client.recv()] == [b"\x01topic", b"\0yes"]
        client.send(b"\0\0topic")
        assert xpub.recv() == [b"\0topic"]
    xpub.close()
    ours.term()


def browser_server(library):
    def attend(connection):
        with contextlib.suppress(websockets.ConnectionClosed):
            if connection.subprotocol == "ZWS2.0":
                connection.send(b"\0server")
                assert connection.recv() == b"\0me"
            else:
                connection.send(b"\x02\x05READY\x0bSocket-Type\0\0\0\x06ROUTER")
                assert connection.recv().startswith(b"\x02\x05READY")
            while True:
                connection.send(connection.recv())

    for protocol in ("ZWS2.0", "ZWS2.0/NULL"):
        with websockets.sync.server.serve(attend, "127.0.0.1", 0, subprotocols=[protocol], max_size=None) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            ours = Ours(library)
            dealer = ours.socket(zmq.DEALER)
            dealer.set(zmq.ROUTING_ID, b"me")
            dealer.connect("ws://localhost:%d" % server.socket.getsockname()[1])
            for size in (0, 100, 70_000, 1 << 20):
                body = os.urandom(size)
                dealer.send(b"a", body)
                assert dealer.recv() == [b"a", body]
            dealer.close()
            ours.term()
            server.shutdown()


def pieces(library, piece):
    ours = Ours(library)
    pull = ours.socket(zmq.PULL)
    peer = Raw.connect(pull.bind(ANY))
    peer.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = request() + frame(BINARY, b"\0") + frame(BINARY, b"\x01one") + frame(BINARY, b"\0two" * 100)
    for start in range(0, len(data), piece):
        peer.write(data[start : start + piece])
    assert pull.recv() == [b"one", (b"\0two" * 100)[1:]]


def fragments(library):
    ours = Ours(library)
    pull = ours.socket(zmq.PULL)
    endpoint = pull.bind(ANY)
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\0in ", 0) + frame(PING, b"!") + frame(0, b"three ", 0) + frame(0, b"pieces"))
    assert pull.recv() == [b"in three pieces"]
    assert peer.recv_frame() == (0x80 | PONG, b"!")
    peer.write(frame(BINARY, b"\0last") + frame(CLOSE, b"\x03\xe9going away"))
    assert peer.recv_frame() == (0x80 | CLOSE, b"\x03\xe9")
    assert peer.closed_by_peer()
    assert pull.recv() == [b"last"]
    # Others go on, and the end of half a message is the end of it.
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\x01half") + frame(CLOSE, b""))
    assert peer.recv_frame() == (0x80 | CLOSE, b"")
    assert peer.closed_by_peer()
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\0whole"))
    assert pull.recv() == [b"whole"]


def serve_once(listener, data=None):
    """Accepts a client's opening; answers it, or else with `data`."""
    peer = Raw(listener.accept()[0])
    head = peer.read_head()
    if data is not None:
        peer.write(data)
        peer.close()
        return None
    key = next(line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key"))
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    peer.write(
        b"HTTP/1.1 101 Welcome\r\nServer: some\r\nconnection: upgrade\r\nupgrade: WebSocket\r\n"
        b"sec-websocket-accept: " + accept + b"\r\nsec-websocket-protocol: ZWS2.0\r\n\r\n\x82\x01\0"
    )
    return peer


def unavailable(library):
    ours = Ours(library)
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    listener = socket.create_server(("127.0.0.1", 0))
    push.connect("ws://127.0.0.1:%d/" % listener.getsockname()[1])
    for answer in (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"220 mail.example.org ESMTP\r\n\r\n",
        b"x" * 20_000,
        b"",
    ):
        serve_once(listener, answer)
    peer = serve_once(listener)
    push.send(b"at last")
    first, length = peer.read(2)
    assert (first, length) == (0x82, 0x81), "our routing id, masked"
    peer.read(5)
    assert peer.read(2) == b"\x82\x88"
    mask = peer.read(4)
    assert bytes(byte ^ mask[n % 4] for n, byte in enumerate(peer.read(8))) == b"\0at last"


def told_to_go(library):
    ours = Ours(library)
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    listener = socket.create_server(("127.0.0.1", 0))
    push.connect("ws://127.0.0.1:%d/" % listener.getsockname()[1])
    for _ in range(3):
        peer = serve_once(listener)
        peer.read(7)
        peer.write(b"\x88\x02\x03\xe9")
        assert peer.read(2) == b"\x88\x82", "goodbye, masked"
        assert peer.closed_by_peer()


BAD_OPENINGS = {
    "another protocol": b"EHLO localhost\r\n\r\n",
    "ZMTP": wire.Zmtp3.greeting(None, 1) + b"\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
    "POST": request().replace(b"GET", b"POST"),
    "no upgrade": request(Upgrade=""),
    "an old version": request(Sec_WebSocket_Version="8"),
    "a short key": request(Sec_WebSocket_Key="c2hvcnQ="),
    "no protocol": request(""),
    "an unknown protocol": request("chat"),
    "another mechanism": request("ZWS2.0/CURVE"),
    "a huge head": b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    "a thousand headers": request(**{f"X{n}": "y" for n in range(1000)}),
}

TERABYTE = struct.pack(">BBQ", 0x82, 0xFF, 1 << 40) + bytes(4)

BAD_FRAMES = {
    "not masked": b"\x82\x03\0hi",
    "text": frame(1, b"\0hi"),
    "unknown flags": frame(BINARY, b"\x07hi"),
    "no flags": frame(BINARY, b""),
    "a continuation of nothing": frame(0, b"\0hi"),
    "a long ping": frame(PING, b"x" * 200),
    "2^63 bytes": struct.pack(">BBQ", 0x82, 0xFF, 1 << 63),
    "a command by the bare protocol": frame(BINARY, b"\x02\x04PING\0\0"),
}


@contextlib.contextmanager
def witnessed(library, **options):
    """Our PULL with a monitor, and a PUSH whose messages must keep coming through."""
    ours = Ours(library)
    pull, push = ours.socket(zmq.PULL), ours.socket(zmq.PUSH)
    for option, value in options.items():
        pull.set(getattr(zmq, option), value)
    monitor = pull.monitor()
    endpoint = pull.bind(ANY)
    push.connect(endpoint)

    def witness():
        push.send(b"witness", b"part")
        assert (got := pull.recv()) == [b"witness", b"part"], got

    witness()
    wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    before = peak_memory()
    yield pull, endpoint, monitor, witness
    witness()
    assert peak_memory() - before < BOUND, f"grew from {before} to {peak_memory()} bytes"
    for thing in (monitor, pull, push):
        thing.close()
    ours.term()


def bad_opening(library, data):
    with witnessed(library) as (_, endpoint, monitor, witness):
        peer = Raw.connect(endpoint)
        with contextlib.suppress(OSError):
            peer.write(data)
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()
        witness()


def bad_frames(library, data):
    with witnessed(library) as (pull, endpoint, monitor, witness):
        peer = greet(endpoint)
        peer.write(frame(BINARY, b"\0good"))
        assert pull.recv() == [b"good"]
        peer.write(data)
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        witness()
        # The same before the handshake is done.
        peer = Raw.connect(endpoint).open()
        peer.write(data)
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()


def slow_opening(library):
    with witnessed(library, HANDSHAKE_IVL=200) as (_, endpoint, monitor, witness):
        for data in (b"", b"GET / HTTP/1.1\r\n", request(), request() + frame(BINARY, b"\0")[:4]):
            peer = Raw.connect(endpoint)
            peer.write(data)
            wait_for_event(monitor, *ENDED)
            assert peer.closed_by_peer()
            witness()


def too_large(library):
    with witnessed(library, MAXMSGSIZE=1000) as (pull, endpoint, monitor, witness):
        for data in (
            frame(BINARY, b"\0" + bytes(1001)),
            frame(BINARY, b"\0" + bytes(900), 0) + frame(0, bytes(101), 0),
            TERABYTE + bytes(10_000),
        ):
            peer = greet(endpoint)
            peer.write(frame(BINARY, b"\0" + bytes(1000)) + frame(BINARY, b"\0" + bytes(500), 0) + frame(0, bytes(500)))
            assert [pull.recv(), pull.recv()] == [[bytes(1000)]] * 2
            peer.write(data)
            wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
            assert peer.closed_by_peer()
    with witnessed(library) as (pull, endpoint, monitor, witness):
        for head in (TERABYTE, bytes((2,)) + TERABYTE[1:]):
            peer = greet(endpoint)
            peer.write(head + bytes(100_000))
            witness()
            peer.close()
            wait_for_event(monitor, zmq.EVENT_DISCONNECTED)


def flood(library):
    with witnessed(library) as (_, endpoint, _monitor, witness):
        peer = greet(endpoint)
        pings = frame(PING, b"x" * 125) * 1000
        peer.stream.settimeout(0.2)
        # Nobody reads the answers.
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):
                peer.write(pings)
        witness()
