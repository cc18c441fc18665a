"""WebSocket over TLS: our library against itself, libzmq with GnuTLS, and Python's OpenSSL. Only if our library has it."""

import asyncio
import contextlib
import os
import socket
import ssl
import threading

import trustme
import websockets.asyncio.client
import websockets.asyncio.server
import wire
import zmq
from bad_peers import ENDED
from cases import Skip
from sides import Ours, wait_for_event
from zws import REFERENCE

ANY = "wss://127.0.0.1:*/zmq"
KEY_PEM, CERT_PEM, TRUST_PEM, HOSTNAME, TRUST_SYSTEM = range(103, 108)


def cases():
    for name, other in [("themselves", None)] + ([("libzmq", REFERENCE)] if REFERENCE else []):
        for ours_serves in (True, False):
            who = "ours" if ours_serves else "theirs"
            yield f"wss with {name}, {who} serves", lambda library, o=other, s=ours_serves: exchange(library, o, s)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        yield f"wss: a browser-like client by {version.name}", lambda library, v=version: browser_client(library, v)
    yield "wss: we connect to a browser-like server", browser_server
    yield "wss: whom a client trusts", trust
    yield "wss: credentials of no use", useless
    for name, data in {
        "HTTP": b"GET / HTTP/1.1\r\n\r\n",
        "ZMTP": wire.Zmtp3.greeting(None, 1),
        "a huge record": b"\x16\x03\x01\xff\xff" + bytes(70_000),
        "half a record": b"\x16\x03\x01\x02\x00" + bytes(100),
    }.items():
        yield f"wss: bad opening: {name}", lambda library, data=data: bad_opening(library, data)


def authority():
    ca = trustme.CA()
    return ca, ca.cert_pem.bytes()


def certify(side_socket, ca, name):
    certificate = ca.issue_cert(name)
    side_socket.set(CERT_PEM, b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    side_socket.set(KEY_PEM, certificate.private_key_pem.bytes())


def trade(client, server):
    """Messages of all sizes in both directions, at the edges of frames and records, then many; and an end."""
    for size in (0, 1, 125, 126, 255, 256, 16_384, 70_000, 1 << 20):
        body = os.urandom(size)
        client.send(b"a", body)
        assert server.recv() == [b"a", body]
        server.send(body, b"b")
        assert client.recv() == [body, b"b"]
    for number in range(5_000):
        client.send(b"%d" % number)
    for number in range(5_000):
        assert server.recv() == [b"%d" % number]
    client.close()
    server.close()


def need(library):
    if Ours(library).lib.zmq_has(b"WSS") != 1:
        raise Skip("the library was built without wss")


def exchange(library, other, ours_serves):
    need(library)
    sides = Ours(library), Ours(other or library)
    serving, asking = sides if ours_serves else sides[::-1]
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
    for side in sides:
        side.term()


def browser_client(library, version):
    need(library)
    ours = Ours(library)
    router = ours.socket(zmq.ROUTER)
    ca, _root = authority()
    certify(router, ca, "127.0.0.1")
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.minimum_version = context.maximum_version = version
    # One thread reads and writes the stream: Python's TLS does not bear two at once.
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


def browser_server(library):
    need(library)
    ca, root = authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)

    port = serve_browsers(context)
    ours = Ours(library)
    dealer = ours.socket(zmq.DEALER)
    dealer.set(TRUST_PEM, root)
    dealer.set(HOSTNAME, b"localhost")
    dealer.connect(f"wss://localhost:{port}")
    for size in (0, 1, 70_000):
        dealer.send(b"a", bytes(size))
        assert dealer.recv() == [b"a", bytes(size)]


def serve_browsers(context):
    """The port of a server that returns what it gets, in a thread of its own."""

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


def trust(library):
    need(library)
    ca, root = authority()
    _other, stranger = authority()
    ours = Ours(library)
    pull = ours.socket(zmq.PULL)
    certify(pull, ca, "server.example.org")
    endpoint = pull.bind(ANY)

    def arrives(**options):
        push = ours.socket(zmq.PUSH)
        push.set(zmq.RECONNECT_IVL, 10)
        for option, value in options.items():
            push.set(globals()[option], value)
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


def useless(library):
    need(library)
    ours = Ours(library)
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
    push.close()
    ours.term()


def bad_opening(library, data):
    need(library)
    ours = Ours(library)
    pull = ours.socket(zmq.PULL)
    pull.set(zmq.HANDSHAKE_IVL, 300)
    ca, root = authority()
    certify(pull, ca, "localhost")
    monitor = pull.monitor()
    endpoint = pull.bind(ANY)
    peer = wire.Peer(socket.create_connection(("127.0.0.1", int(endpoint.split(":")[2].split("/")[0]))))
    with contextlib.suppress(OSError):
        peer.write(data)
    wait_for_event(monitor, *ENDED)
    assert peer.closed_by_peer()
    push = ours.socket(zmq.PUSH)
    push.set(TRUST_PEM, root)
    push.connect(endpoint)
    push.send(b"others go on")
    assert pull.recv() == [b"others go on"]
