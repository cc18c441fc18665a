"""ZMQ_SOCKS_PROXY connects to peers behind a SOCKS 5 proxy, and retries after proxies that refuse, stay silent or send nonsense."""

import contextlib
import socket
import struct
import threading

import pytest
import zmq
from sides import Failure, wait_for_event
from zmtp import read_exactly


class Proxy:
    """A SOCKS 5 proxy on a port of 127.0.0.1. It records the requests, and connects each client to `target`."""

    def __init__(self, target=None, login=None, reply=0, trickle=False):
        self.target, self.login, self.reply, self.trickle = target, login, reply, trickle
        self.asked, self.changed = [], threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.attend, args=(client,), daemon=True).start()

    def attend(self, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError, EOFError):
            self.negotiate(client)
        client.close()

    def negotiate(self, client):
        version, count = read_exactly(client, 2)
        assert version == 5
        methods = read_exactly(client, count)
        method = 2 if self.login else 0
        if method not in methods:
            client.sendall(b"\x05\xff")
            return
        self.answer(client, bytes((5, method)))
        if self.login:
            read_exactly(client, 1)
            user = read_exactly(client, read_exactly(client, 1)[0])
            password = read_exactly(client, read_exactly(client, 1)[0])
            good = (user, password) == self.login
            self.answer(client, bytes((1, 0 if good else 1)))
            if not good:
                return
        head = read_exactly(client, 4)
        assert head[:3] == b"\x05\x01\x00"
        host = read_exactly(client, {1: 4, 3: 0, 4: 16}[head[3]] or read_exactly(client, 1)[0])
        port = struct.unpack(">H", read_exactly(client, 2))[0]
        with self.changed:
            self.asked.append((head[3], host, port))
            self.changed.notify_all()
        answer = bytes((5, self.reply, 0)) + b"\x03\x09localhost\x00\x07"
        if self.reply:
            self.answer(client, answer)
            return
        peer = socket.create_connection(("127.0.0.1", self.target or port))
        # The peer's greeting and the proxy's answer arrive in one piece.
        first = peer.recv(4096)
        self.answer(client, answer + first)
        threading.Thread(target=copy, args=(client, peer), daemon=True).start()
        copy(peer, client)

    def answer(self, client, data):
        if not self.trickle:
            client.sendall(data)
            return
        for byte in data:
            client.sendall(bytes((byte,)))

    def first(self):
        with self.changed:
            self.changed.wait_for(lambda: self.asked)
            return self.asked[0]


def copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize(
    ("side", "host", "kind", "proxy_options"),
    [
        pytest.param("ours", "127.0.0.1", 1, {}, id="socks to Ours"),
        pytest.param("theirs", "127.0.0.1", 1, {}, id="socks to Theirs"),
        pytest.param("ours", "only.proxy.knows", 3, {}, id="socks to a name that only the proxy knows"),
        pytest.param("ours", "[::1]", 4, {}, id="socks to IPv6"),
        pytest.param("ours", "127.0.0.1", 1, {"login": (b"me", b"secret")}, id="socks with a login"),
        pytest.param("ours", "127.0.0.1", 1, {"login": (b"me", b"")}, id="socks with a login without a password"),
        pytest.param("ours", "only.proxy.knows", 3, {"trickle": True, "login": (b"me", b"x")}, id="socks, answers byte by byte"),
    ],
)
def test_reaches(request, ours, side, host, kind, proxy_options):
    pull = request.getfixturevalue(side).socket(zmq.PULL)
    port = int(pull.bind("tcp://127.0.0.1:*").rsplit(":", 1)[1])
    proxy = Proxy(port, **proxy_options)
    push = ours.socket(zmq.PUSH)
    monitor = push.monitor()
    push.set(zmq.SOCKS_PROXY, proxy.address.encode())
    if proxy.login:
        push.set(99, proxy.login[0])
        push.set(100, proxy.login[1])
    push.connect(f"tcp://{host}:{port}")
    for number in range(100):
        push.send(b"%d" % number, b"x" * number * 10)
    for number in range(100):
        assert pull.recv() == [b"%d" % number, b"x" * number * 10]
    asked = proxy.first()
    assert (asked[0], asked[2]) == (kind, port), asked
    if kind == 3:
        assert asked[1] == host.encode()
    wait_for_event(monitor, zmq.EVENT_CONNECTED)


def test_socks_by_name_and_from_a_source(ours):
    pull, push = ours.socket(zmq.PULL), ours.socket(zmq.PUSH)
    port = int(pull.bind("tcp://127.0.0.1:*").rsplit(":", 1)[1])
    proxy = Proxy(port)
    push.set(zmq.SOCKS_PROXY, b"127.0.0.1:0;localhost:" + proxy.address.rsplit(":", 1)[1].encode())
    push.connect(f"tcp://192.0.2.1:{port}")
    push.send(b"hello")
    assert pull.recv() == [b"hello"]


def attempt(ours, address, login=None, **options):
    push = ours.socket(zmq.PUSH)
    monitor = push.monitor()
    push.set(zmq.SOCKS_PROXY, address.encode())
    if login:
        push.set(99, login[0])
        push.set(100, login[1])
    push.set(zmq.RECONNECT_IVL, 10)
    for option, value in options.items():
        push.set(getattr(zmq, option), value)
    push.connect("tcp://192.0.2.1:5555")
    return push, monitor


def keeps_trying(monitor):
    for _ in range(3):
        assert wait_for_event(monitor, zmq.EVENT_CLOSED, zmq.EVENT_CONNECTED) is not None
        wait_for_event(monitor, zmq.EVENT_CONNECT_RETRIED)


def test_socks_wrong_password(ours):
    proxy = Proxy(login=(b"me", b"secret"))
    _push, monitor = attempt(ours, proxy.address, (b"me", b"guess"))
    keeps_trying(monitor)
    _push, monitor = attempt(ours, proxy.address)
    keeps_trying(monitor)
    assert not proxy.asked


@pytest.mark.parametrize("code", [pytest.param(code, id=f"socks, refused with {code}") for code in (1, 2, 5, 99)])
def test_tries_again(ours, code):
    proxy = Proxy(reply=code)
    _push, monitor = attempt(ours, proxy.address)
    keeps_trying(monitor)
    assert len(proxy.asked) >= 3


def test_socks_refused_and_reconnect_stop(ours):
    proxy = Proxy(reply=5)
    _push, monitor = attempt(ours, proxy.address, RECONNECT_STOP=1)
    wait_for_event(monitor, zmq.EVENT_CLOSED)
    assert not monitor.readable(200)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="socks, nonsense"),
        pytest.param(b"\x04\x5a" + bytes(6), id="socks, version 4"),
        pytest.param(b"", id="socks, an end"),
        pytest.param(b"\x05", id="socks, half an answer"),
        pytest.param(b"\x05\x00\x05\x00\x00\x03\xffshort", id="socks, half a reply"),
        pytest.param(b"\x05\x00\x05\x00\x00\x07" + bytes(20), id="socks, a reply with no kind of address"),
    ],
)
def test_tries_again_after_a_bad_answer(ours, answer):
    listener = socket.create_server(("127.0.0.1", 0))
    _push, monitor = attempt(ours, "127.0.0.1:%d" % listener.getsockname()[1])
    for _ in range(3):
        client, _ = listener.accept()
        client.recv(3)
        with contextlib.suppress(OSError):  # our side may have closed the connection already
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
        wait_for_event(monitor, zmq.EVENT_CONNECT_RETRIED)
        client.close()


def test_socks_silence_and_connect_timeout(ours):
    listener = socket.create_server(("127.0.0.1", 0))
    push, monitor = attempt(ours, "127.0.0.1:%d" % listener.getsockname()[1], CONNECT_TIMEOUT=50)
    kept = []
    for _ in range(2):
        kept.append(listener.accept()[0])
        wait_for_event(monitor, zmq.EVENT_CONNECT_RETRIED)
    # Close the socket while it waits for an answer.
    kept.append(listener.accept()[0])
    push.close()
    while kept[-1].recv(100):
        pass


def test_socks_what_no_proxy_can_be(ours):
    for address in (b"somewhere", b"127.0.0.1:*", b"127.0.0.1:70000", b":1080"):
        push = ours.socket(zmq.PUSH)
        push.set(zmq.SOCKS_PROXY, address)
        with pytest.raises(Failure):
            push.connect("tcp://127.0.0.1:5555")
        # A bound endpoint does not use the proxy.
        push.bind("tcp://127.0.0.1:*")
        push.bind("ipc://*")
