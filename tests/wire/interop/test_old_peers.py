"""Our patterns work with peers of ZMTP 1.0, 2.0, 3.0 and 3.1 from raw bytes."""

import itertools

import pytest
import zmq
import zmtp
from zmtp import Listener, Peer, Zmtp1, Zmtp2, Zmtp3

MESSAGES = [
    [b""],
    [b"a"],
    [b"b" * 252],
    [b"c" * 253],
    [b"d" * 254],
    [b"e" * 255],
    [b"f" * 256],
    [b"g", b"", b"h" * 300],
    [b"i" * (1 << 20), b"j"],
]


def connection(version, listener, endpoint):
    return version.connect(endpoint) if endpoint else listener.accept(version)


def speak_1(listener, endpoint, _name):
    return connection(Zmtp1, listener, endpoint).handshake()


def speak_2(listener, endpoint, name):
    peer = connection(Zmtp2, listener, endpoint).handshake(getattr(zmtp, name))
    assert peer.identity == b""
    return peer


def speak_3(minor):
    def speak(listener, endpoint, name):
        return connection(Zmtp3, listener, endpoint).handshake(name, minor)

    return speak


def receive(socket, peer, _version):
    for message in MESSAGES:
        peer.send(*message)
    for message in MESSAGES:
        assert socket.recv() == message


def send(socket, peer, _version):
    for message in MESSAGES:
        socket.send(*message)
    for message in MESSAGES:
        assert peer.recv() == message


def both(socket, peer, version):
    receive(socket, peer, version)
    send(socket, peer, version)


def split(socket, peer, _version):
    """Writes messages byte by byte, so that frames arrive in pieces."""
    data = []
    peer_write, peer.write = peer.write, data.append
    for message in MESSAGES[:-1]:
        peer.send(*message)
    for byte in b"".join(data):
        peer_write(bytes([byte]))
    for message in MESSAGES[:-1]:
        assert socket.recv() == message


def route(socket, peer, _version):
    for message in MESSAGES:
        peer.send(*message)
        routing_id, *received = socket.recv()
        assert received == message
        socket.send(routing_id, *message)
        assert peer.recv() == message


def request(socket, peer, _version):
    for message in MESSAGES:
        socket.send(*message)
        assert peer.recv() == [b""] + message
        peer.send(b"", *message)
        assert socket.recv() == message


def reply(socket, peer, _version):
    for message in MESSAGES:
        peer.send(b"one", b"two", b"", *message)
        assert socket.recv() == message
        socket.send(*message)
        assert peer.recv() == [b"one", b"two", b""] + message


def publish(socket, peer, version):
    if version == "1.0":
        # A subscriber of ZMTP 1.0 filters messages itself and sends no subscriptions, so it gets all messages.
        assert (got := socket.recv()) == [b"\x01"], got
        socket.send(b"b", b"more")
        assert peer.recv() == [b"b", b"more"]
        return
    subscribe, cancel = to_publisher(peer, version)
    subscribe(b"a")
    assert (got := socket.recv()) == [b"\x01a"], got
    socket.send(b"b")
    socket.send(b"ab", b"more")
    assert peer.recv() == [b"ab", b"more"]
    cancel(b"a")
    assert socket.recv() == [b"\x00a"]
    subscribe(b"")
    assert socket.recv() == [b"\x01"]
    socket.send(b"b")
    assert peer.recv() == [b"b"]


def subscribe(socket, peer, version):
    socket.set(zmq.SUBSCRIBE, b"topic")
    assert from_subscriber(peer, socket, version) == (True, b"topic")
    for message in ([b"to"], [b"topic!", b"x"], [b"other"], [b"topic"]):
        peer.send(*message)
    assert socket.recv() == [b"topic!", b"x"]
    assert socket.recv() == [b"topic"]
    socket.set(zmq.UNSUBSCRIBE, b"topic")
    assert from_subscriber(peer, socket, version) == (False, b"topic")


def to_publisher(peer, version):
    """Returns the functions with which this version subscribes and cancels."""
    if version == "3.1":
        return (lambda topic: peer.send_command("SUBSCRIBE", topic)), (lambda topic: peer.send_command("CANCEL", topic))
    return (lambda topic: peer.send(b"\x01" + topic)), (lambda topic: peer.send(b"\x00" + topic))


def from_subscriber(peer, socket, version):
    """Returns the next subscription that reaches a peer of this version, as (true for subscribe, topic)."""
    socket.readable(50)  # a binding socket sends subscriptions in its next call, when it processes the new connection
    if version == "3.1":
        name, topic = peer.recv_command()
        assert name in ("SUBSCRIBE", "CANCEL"), name
        return name == "SUBSCRIBE", topic
    (message,) = peer.recv()
    assert message[0] in (0, 1), message
    return message[0] == 1, message[1:]


VERSIONS = {"1.0": speak_1, "2.0": speak_2, "3.0": speak_3(0), "3.1": speak_3(1)}

PEER_OF = {
    zmq.PULL: "PUSH", zmq.PUSH: "PULL", zmq.PAIR: "PAIR", zmq.REQ: "REP", zmq.REP: "REQ", zmq.DEALER: "ROUTER",
    zmq.ROUTER: "DEALER", zmq.XPUB: "SUB", zmq.SUB: "PUB",
}

EXCHANGES = [
    (zmq.PULL, receive),
    (zmq.PULL, split),
    (zmq.PUSH, send),
    (zmq.PAIR, both),
    (zmq.DEALER, both),
    (zmq.ROUTER, route),
    (zmq.REQ, request),
    (zmq.REP, reply),
    (zmq.XPUB, publish),
    (zmq.SUB, subscribe),
]


def cases():
    for version, we_bind in itertools.product(VERSIONS, (True, False)):
        for kind, body in EXCHANGES:
            who = "binds" if we_bind else "connects"
            name = f"{kind.name} {who}, peer speaks ZMTP {version}: {body.__name__}"
            yield pytest.param(version, kind, body, we_bind, id=name)


@pytest.mark.parametrize(("version", "kind", "body", "we_bind"), list(cases()))
def test_exchange(ours, version, kind, body, we_bind):
    socket, listener = ours.socket(kind), Listener()
    if we_bind:
        endpoint = socket.bind("tcp://127.0.0.1:*")
    else:
        socket.connect(listener.endpoint)
        endpoint = None
    peer = VERSIONS[version](listener, endpoint, PEER_OF[kind])
    body(socket, peer, version)


def test_our_pong_repeats_the_context(ours):
    socket, peer = pull_and_peer(ours)
    peer.send_command("PING", b"\x00\x64" + b"context")
    assert peer.recv_command() == ("PONG", b"context")
    peer.send(b"still")
    assert socket.recv() == [b"still"]


def test_heartbeat_notices_silence(ours):
    socket = ours.socket(zmq.PULL)
    socket.set(zmq.HEARTBEAT_IVL, 50)
    socket.set(zmq.HEARTBEAT_TIMEOUT, 300)
    socket.set(zmq.HEARTBEAT_TTL, 1000)
    peer = Zmtp3.connect(socket.bind("tcp://127.0.0.1:*")).handshake("PUSH")
    for _ in range(5):
        name, data = peer.recv_command()
        assert (name, data[:2]) == ("PING", b"\x00\x0a"), (name, data)
        peer.send_command("PONG", data[2:])
    peer.closed_by_peer()  # there is no further answer


def pull_and_peer(ours):
    socket = ours.socket(zmq.PULL)
    return socket, Zmtp3.connect(socket.bind("tcp://127.0.0.1:*")).handshake("PUSH")


def test_properties_of_ready(ours):
    socket = ours.socket(zmq.ROUTER)
    endpoint = socket.bind("tcp://127.0.0.1:*")
    # Properties may have any order, and unknown properties are ignored.
    peer = Zmtp3.connect(endpoint)
    peer.write(zmtp.greeting())
    peer.read(64)
    peer.send_command("READY", zmtp.metadata(("X-Unknown", b"\x00" * 300), ("Identity", b"me"), ("Socket-Type", b"DEALER")))
    name, data = peer.recv_command()
    assert name == "READY" and b"Socket-Type\x00\x00\x00\x06ROUTER" in data, data
    peer.send(b"hello")
    assert (got := socket.recv()) == [b"me", b"hello"], got
    socket.send(b"me", b"hi")
    assert peer.recv() == [b"hi"]


def test_routing_id_of_a_2_0_peer(ours):
    socket = ours.socket(zmq.ROUTER)
    socket.set(zmq.ROUTING_ID, b"router")
    peer = Zmtp2.connect(socket.bind("tcp://127.0.0.1:*")).handshake(zmtp.DEALER, b"old")
    assert (peer.socket_type, peer.identity) == (zmtp.ROUTER, b"router")
    peer.send(b"hello")
    assert socket.recv() == [b"old", b"hello"]


def test_routing_id_of_a_1_0_peer(ours):
    socket = ours.socket(zmq.ROUTER)
    socket.set(zmq.ROUTING_ID, b"router")
    peer = Zmtp1.connect(socket.bind("tcp://127.0.0.1:*")).handshake(b"older")
    assert peer.identity == b"router", peer.identity
    peer.send(b"hello")
    assert socket.recv() == [b"older", b"hello"]


def test_stream_with_a_plain_socket(ours):
    socket = ours.socket(zmq.STREAM)
    peer = Peer.connect(socket.bind("tcp://127.0.0.1:*"))
    routing_id, empty = socket.recv()
    assert len(routing_id) == 5 and empty == b""
    peer.write(b"GET /")
    assert (got := socket.recv()) == [routing_id, b"GET /"], got
    socket.send(routing_id, b"200 OK")
    assert peer.read(6) == b"200 OK"
    peer.close()
    assert socket.recv() == [routing_id, b""]
