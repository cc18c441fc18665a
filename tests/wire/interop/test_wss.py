"""WebSocket over TLS works with our library, libzmq with GnuTLS, and Python's OpenSSL. Needs a build with TLS."""

import asyncio
import contextlib
import ssl
import threading

import certificates
import pytest
import websockets.asyncio.client
import websockets.asyncio.server
import zmq
import zmtp
from certificates import CERT_PEM, HOSTNAME, KEY_PEM, TRUST_PEM, authority, certify, trade
from sides import wait_for_event
from witness import ENDED

ANY = "wss://127.0.0.1:*/zmq"


@pytest.fixture(autouse=True)
def needs_wss(ours):
    if ours.lib.zmq_has(b"WSS") != 1:
        pytest.skip("the library was built without wss")


@pytest.mark.parametrize(
    ("other", "ours_serves"),
    [
        pytest.param(other, serves, id=f"wss with {name}, {'ours' if serves else 'theirs'} serves")
        for name, other in {"themselves": "library", "libzmq": "reference"}.items()
        for serves in (True, False)
    ],
    indirect=["other"],
)
def test_exchange(ours, other, ours_serves):
    serving, asking = (ours, other) if ours_serves else (other, ours)
    server, client = serving.socket(zmq.PAIR), asking.socket(zmq.PAIR)
    ca, root = authority()
    certify(server, ca, "server.example.org")
    client.set(TRUST_PEM, root)
    client.set(HOSTNAME, b"server.example.org")
    for peer in (server, client):
        peer.set(zmq.HEARTBEAT_IVL, 20)
        peer.set(zmq.HEARTBEAT_TIMEOUT, 5000)
    client.connect(server.bind(ANY))
    trade(client, server)


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(version, id=f"wss: a browser-like client by {version.name}")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    ],
)
def test_browser(ours, version):
    router = ours.socket(zmq.ROUTER)
    ca, _root = authority()
    certify(router, ca, "127.0.0.1")
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.minimum_version = context.maximum_version = version
    # One thread reads and writes the stream, because Python's TLS does not support two threads.
    asyncio.run(browse(router, router.bind(ANY), context))


async def browse(router, endpoint, context):
    async with websockets.asyncio.client.connect(endpoint, ssl=context, subprotocols=["ZWS2.0"]) as client:
        await client.send(b"\0browser")
        assert await client.recv() == b"\0"
        for size in (1, 70_000):
            await client.send(b"\0" + bytes(size))
            assert await asyncio.to_thread(router.recv) == [b"browser", bytes(size)]
            await asyncio.to_thread(router.send, b"browser", bytes(size))
            assert await client.recv() == b"\0" + bytes(size)
        await asyncio.wait_for(await client.ping(b"there?"), 5)
    assert client.close_code == 1000, client.close_code


def test_wss_with_a_browser_like_server(ours):
    ca, root = authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)

    port = serve_browsers(context)
    dealer = ours.socket(zmq.DEALER)
    dealer.set(TRUST_PEM, root)
    dealer.set(HOSTNAME, b"localhost")
    dealer.connect(f"wss://localhost:{port}")
    for size in (0, 1, 70_000):
        dealer.send(b"a", bytes(size))
        assert dealer.recv() == [b"a", bytes(size)]


def serve_browsers(context):
    """Starts an echo server in its own thread, and returns its port."""

    async def attend(connection):
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.send(b"\0")
            await connection.recv()
            while True:
                await connection.send(await connection.recv())

    async def serve():
        server = await websockets.asyncio.server.serve(attend, "127.0.0.1", 0, ssl=context, subprotocols=["ZWS2.0"])
        port.append(server.sockets[0].getsockname()[1])
        listens.set()
        await server.serve_forever()

    port, listens = [], threading.Event()
    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
    listens.wait()
    return port[0]


def test_wss_whom_a_client_trusts(ours):
    ca, root = authority()
    _other, stranger = authority()
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "server.example.org")
    endpoint = pull.bind(ANY)

    def arrives(**options):
        push = ours.socket(zmq.PUSH)
        push.set(zmq.RECONNECT_IVL, 10)
        for option, value in options.items():
            push.set(getattr(certificates, option), value)
        monitor = push.monitor()
        push.connect(endpoint)
        push.send(b"hello")
        outcome = wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED, *ENDED)
        if outcome == 0:
            assert pull.recv() == [b"hello"]
        else:
            wait_for_event(monitor, zmq.EVENT_CONNECT_RETRIED)
        push.close()
        return outcome == 0

    assert arrives(TRUST_PEM=root, HOSTNAME=b"server.example.org")
    assert arrives(TRUST_PEM=root), "without a name the chain is enough"
    assert not arrives(TRUST_PEM=root, HOSTNAME=b"other.example.org")
    assert not arrives(TRUST_PEM=stranger)
    assert not arrives(TRUST_SYSTEM=1)
    assert not arrives(TRUST_PEM=root, TRUST_SYSTEM=1), "beside the system's the name is that of the endpoint"
    assert arrives(TRUST_PEM=root, TRUST_SYSTEM=1, HOSTNAME=b"server.example.org")
    assert not arrives()
    assert not pull.readable(0)


def test_wss_credentials_of_no_use(ours):
    ca, root = authority()
    for options in ({}, {CERT_PEM: root}, {CERT_PEM: b"nonsense", KEY_PEM: b"nonsense"}):
        pull = ours.socket(zmq.PULL)
        for option, value in options.items():
            pull.set(option, value)
        assert pull.lib.zmq_bind(pull.handle, ANY.encode()) == -1
        assert ours.lib.zmq_errno() == 22
        pull.close()
    push = ours.socket(zmq.PUSH)
    push.set(TRUST_PEM, b"nonsense")
    assert push.lib.zmq_connect(push.handle, b"wss://127.0.0.1:5555/") == -1
    assert ours.lib.zmq_errno() == 22


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="wss: bad opening: HTTP"),
        pytest.param(zmtp.greeting(), id="wss: bad opening: ZMTP"),
        pytest.param(b"\x16\x03\x01\xff\xff" + bytes(70_000), id="wss: bad opening: a huge record"),
        pytest.param(b"\x16\x03\x01\x02\x00" + bytes(100), id="wss: bad opening: half a record"),
    ],
)
def test_bad_opening_ends_the_connection(ours, data):
    pull = ours.socket(zmq.PULL)
    pull.set(zmq.HANDSHAKE_IVL, 300)
    ca, root = authority()
    certify(pull, ca, "localhost")
    monitor = pull.monitor()
    endpoint = pull.bind(ANY)
    peer = zmtp.Peer.connect(endpoint)
    with contextlib.suppress(OSError):
        peer.write(data)
    wait_for_event(monitor, *ENDED)
    assert peer.closed_by_peer()
    push = ours.socket(zmq.PUSH)
    push.set(TRUST_PEM, root)
    push.connect(endpoint)
    push.send(b"others go on")
    assert pull.recv() == [b"others go on"]
