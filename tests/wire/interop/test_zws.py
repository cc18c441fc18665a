"""WebSocket (ZWS 2.0) works with our library, libzmq, the `websockets` package, and peers from raw bytes."""

import base64
import contextlib
import hashlib
import itertools
import os
import re
import socket
import struct
import threading

import exchanges
import pytest
import websockets.headers
import websockets.sync.client
import websockets.sync.server
import zmq
import zmtp
from sides import own_tcp, wait_for_event
from witness import ENDED, pull_with_witness
from zap import curve, handler, plain, sneak, wrong_password, wrong_server_key
from zmtp import BINARY, Peer, ws_request

# A token of HTTP must not have a slash, but RFC 45 has a slash in the names of its protocols. Browsers support only ZWS2.0.
websockets.headers._token_re = re.compile("(?:" + websockets.headers._token_re.pattern + "|/)+")

PING, PONG, CLOSE = zmtp.WS_PING, zmtp.WS_PONG, zmtp.WS_CLOSE
KEY = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
ANY = "ws://127.0.0.1:*/zmq"  # libzmq cannot bind to a path with more slashes

OTHERS = {"themselves": "library", "libzmq": "reference"}


def frame(opcode, payload, fin=True):
    """Returns a masked frame, as a browser sends it."""
    return zmtp.ws_frame(opcode, payload, fin, mask=os.urandom(4))


class Raw(Peer):
    """A WebSocket client from raw bytes."""

    def open(self, protocol="ZWS2.0"):
        self.write(ws_request(protocol, **KEY))
        head = zmtp.ws_read_head(self.stream)
        assert head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
        return self

    def recv_frame(self):
        first, length = self.read(2)
        if length == 126:
            length = struct.unpack(">H", self.read(2))[0]
        return first, self.read(length)


def greet(endpoint, routing_id=b""):
    """Returns a client from raw bytes that has exchanged the routing ids."""
    peer = Raw.connect(endpoint).open()
    peer.write(frame(BINARY, b"\0" + routing_id))
    assert peer.recv_frame()[0] == 0x80 | BINARY
    return peer


def exchange_cases():
    for (name, other), exchange in itertools.product(OTHERS.items(), exchanges.EXCHANGES):
        ways = itertools.product((True, False), repeat=2) if name == "libzmq" else [(True, True)]
        for ours_first, ours_binds in ways:
            names = [zmq.SocketType(kind).name for kind in exchange[:2]]
            names[0 if ours_first else 1] += " (ours)"
            binds = "ours" if ours_binds else "theirs"
            title = f"ws with {name}: {' to '.join(names)}, {binds} binds: {exchange[2].__name__}"
            yield pytest.param(other, exchange, ours_first, ours_binds, id=title)


@pytest.mark.parametrize(("other", "exchange", "ours_first", "ours_binds"), list(exchange_cases()), indirect=["other"])
def test_exchange(ours, other, exchange, ours_first, ours_binds):
    exchanges.run(exchange, ours, other, ours_first, ours_binds, ANY)


@pytest.mark.parametrize(
    "other",
    [pytest.param(other, id=f"ws with {name}: heartbeats of both") for name, other in OTHERS.items()],
    indirect=True,
)
def test_connection_stays(ours, other):
    for settings in itertools.product((True, False), repeat=2):
        a, b = ours.socket(zmq.PAIR), other.socket(zmq.PAIR)
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


def secured_cases():
    for (name, other), mechanism, ours_serves in itertools.product(OTHERS.items(), (plain, curve), (True, False)):
        title = f"ws with {name}: {mechanism.__name__}, {'ours' if ours_serves else 'theirs'} serves"
        yield pytest.param(other, mechanism, ours_serves, id=title)


@pytest.mark.parametrize(("other", "mechanism", "ours_serves"), list(secured_cases()), indirect=["other"])
def test_mechanism(ours, other, mechanism, ours_serves):
    """With PLAIN and CURVE, messages pass both ways with subscriptions and PINGs. A client with wrong credentials is refused."""
    serving, asking = (ours, other) if ours_serves else (other, ours)
    with handler(serving):
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
                    sub.readable(20)  # a bound socket sends its subscriptions when a call of its owner processes the new peer
                assert xpub.recv() == [b"\x01topic"]
                xpub.send(b"other")
                xpub.send(b"topic", b"yes")
                assert sub.recv() == [b"topic", b"yes"]
            server.close()
            client.close()
        server, client = serving.socket(zmq.PULL), asking.socket(zmq.PUSH)
        mechanism(server, client)
        (wrong_password if mechanism is plain else wrong_server_key)(client)
        client.connect(server.bind(ANY))
        sneak(client)
        assert not server.readable(300)


def test_ws_names_of_endpoints(ours):
    for text, start, path in (
        ("ws://127.0.0.1:*", "ws://127.0.0.1:", "/"),
        ("ws://*:*/a/b?c=d", "ws://0.0.0.0:", "/a/b?c=d"),
        ("ws://lo:*/", "ws://127.0.0.1:", "/"),
    ):
        pull = ours.socket(zmq.PULL)
        endpoint = pull.bind(text)
        assert endpoint.startswith(start) and endpoint.endswith(path), endpoint
        pull.call("zmq_unbind", endpoint.encode())
        pull.bind(endpoint)  # the address is free immediately
        pull.close()
    for text in ("ws://127.0.0.1", "ws:///x", "ws://127.0.0.1:*/a b", "ws://127.0.0.1:*/a\r\nX: y", "ws://127.0.0.1:*/\u00e4"):
        for call in ("zmq_bind", "zmq_connect"):
            pull = ours.socket(zmq.PULL)
            assert pull.lib[call](pull.handle, text.encode()) == -1, text
            assert ours.lib.zmq_errno() == 22, text
            pull.close()


def test_ws_is_not_for_streams(ours):
    stream = ours.socket(zmq.STREAM)
    for call in ("zmq_bind", "zmq_connect"):
        assert stream.lib[call](stream.handle, b"ws://127.0.0.1:5555") == -1
        assert ours.lib.zmq_errno() == 156384712 + 52  # ENOCOMPATPROTO


def test_ws_reconnects_after_a_restart(ours):
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


def test_ws_with_a_browser_like_client(ours):
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
    # Our side closed the connection cleanly. Otherwise the wait for our close frame would have failed.
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


def test_ws_with_a_browser_like_subscriber(ours):
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


def test_ws_with_a_browser_like_server(ours):
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
            dealer = ours.socket(zmq.DEALER)
            dealer.set(zmq.ROUTING_ID, b"me")
            dealer.connect("ws://localhost:%d" % server.socket.getsockname()[1])
            for size in (0, 100, 70_000, 1 << 20):
                body = os.urandom(size)
                dealer.send(b"a", body)
                assert dealer.recv() == [b"a", body]
            dealer.close()
            server.shutdown()


@pytest.mark.parametrize("piece", [pytest.param(piece, id=f"ws: a client in pieces of {piece}") for piece in (1, 7, 1000)])
def test_opening_and_messages(ours, piece):
    pull = ours.socket(zmq.PULL)
    peer = Raw.connect(pull.bind(ANY))
    peer.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = ws_request() + frame(BINARY, b"\0") + frame(BINARY, b"\x01one") + frame(BINARY, b"\0two" * 100)
    for start in range(0, len(data), piece):
        peer.write(data[start : start + piece])
    assert pull.recv() == [b"one", (b"\0two" * 100)[1:]]


def test_ws_fragments_pings_and_goodbye(ours):
    pull = ours.socket(zmq.PULL)
    endpoint = pull.bind(ANY)
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\0in ", fin=False) + frame(PING, b"!") + frame(0, b"three ", fin=False) + frame(0, b"pieces"))
    assert pull.recv() == [b"in three pieces"]
    assert peer.recv_frame() == (0x80 | PONG, b"!")
    peer.write(frame(BINARY, b"\0last") + frame(CLOSE, b"\x03\xe9going away"))
    assert peer.recv_frame() == (0x80 | CLOSE, b"\x03\xe9")
    assert peer.closed_by_peer()
    assert pull.recv() == [b"last"]
    # Other connections continue, and an incomplete message ends its connection.
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\x01half") + frame(CLOSE, b""))
    assert peer.recv_frame() == (0x80 | CLOSE, b"")
    assert peer.closed_by_peer()
    peer = greet(endpoint)
    peer.write(frame(BINARY, b"\0whole"))
    assert pull.recv() == [b"whole"]


def serve_once(listener, data=None):
    """Accepts the HTTP request of a client. Answers with `data`, or by default with the right response."""
    peer = Raw(listener.accept()[0])
    head = zmtp.ws_read_head(peer.stream)
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


def test_ws_connects_after_503(ours):
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


def test_ws_reconnects_after_a_close_frame(ours):
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
    "ZMTP": zmtp.greeting() + b"\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
    "POST": ws_request().replace(b"GET", b"POST"),
    "no upgrade": ws_request(Upgrade=""),
    "an old version": ws_request(Sec_WebSocket_Version="8"),
    "a short key": ws_request(Sec_WebSocket_Key="c2hvcnQ="),
    "no protocol": ws_request(""),
    "an unknown protocol": ws_request("chat"),
    "another mechanism": ws_request("ZWS2.0/CURVE"),
    "a huge head": b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000,
    "a thousand headers": ws_request(**{f"X{n}": "y" for n in range(1000)}),
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


def witnessed(ours, **options):
    """Our PULL with a monitor, and a PUSH. The messages of this PUSH must continue to arrive."""
    return pull_with_witness(ours, ours, ANY, [(getattr(zmq, option), value) for option, value in options.items()])


@pytest.mark.parametrize("data", [pytest.param(data, id=f"ws: bad opening: {name}") for name, data in BAD_OPENINGS.items()])
def test_bad_opening_ends_the_connection(ours, data):
    with witnessed(ours) as (_, endpoint, monitor, witness):
        peer = Raw.connect(endpoint)
        with contextlib.suppress(OSError):
            peer.write(data)
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()
        witness()


@pytest.mark.parametrize("data", [pytest.param(data, id=f"ws: bad traffic: {name}") for name, data in BAD_FRAMES.items()])
def test_bad_traffic_ends_the_connection(ours, data):
    with witnessed(ours) as (pull, endpoint, monitor, witness):
        peer = greet(endpoint)
        peer.write(frame(BINARY, b"\0good"))
        assert pull.recv() == [b"good"]
        peer.write(data)
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        witness()
        # Send the same data during the handshake.
        peer = Raw.connect(endpoint).open()
        peer.write(data)
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()


def test_ws_slow_opening_and_handshake_ivl(ours):
    with witnessed(ours, HANDSHAKE_IVL=200) as (_, endpoint, monitor, witness):
        for data in (b"", b"GET / HTTP/1.1\r\n", ws_request(), ws_request() + frame(BINARY, b"\0")[:4]):
            peer = Raw.connect(endpoint)
            peer.write(data)
            wait_for_event(monitor, *ENDED)
            assert peer.closed_by_peer()
            witness()


def test_ws_maxmsgsize(ours):
    with witnessed(ours, MAXMSGSIZE=1000) as (pull, endpoint, monitor, witness):
        for data in (
            frame(BINARY, b"\0" + bytes(1001)),
            frame(BINARY, b"\0" + bytes(900), fin=False) + frame(0, bytes(101), fin=False),
            TERABYTE + bytes(10_000),
        ):
            peer = greet(endpoint)
            peer.write(frame(BINARY, b"\0" + bytes(1000)) + frame(BINARY, b"\0" + bytes(500), fin=False) + frame(0, bytes(500)))
            assert [pull.recv(), pull.recv()] == [[bytes(1000)]] * 2
            peer.write(data)
            wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
            assert peer.closed_by_peer()
    with witnessed(ours) as (pull, endpoint, monitor, witness):
        for head in (TERABYTE, bytes((2,)) + TERABYTE[1:]):
            peer = greet(endpoint)
            peer.write(head + bytes(100_000))
            witness()
            peer.close()
            wait_for_event(monitor, zmq.EVENT_DISCONNECTED)


def test_ws_flood_of_pings(ours):
    with witnessed(ours) as (_, endpoint, _monitor, witness):
        peer = greet(endpoint)
        pings = frame(PING, b"x" * 125) * 1000
        peer.stream.settimeout(0.2)
        # The peer does not read the answers.
        with contextlib.suppress(TimeoutError):
            for _ in range(1000):
                peer.write(pings)
        witness()
