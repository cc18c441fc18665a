"""Tests CURVE and TLS that a policy puts on sockets of programs without CURVE or TLS."""

import contextlib
import os
import socket
import ssl
import threading

import trustme
from programs import CLIENT, CURVE_AT, PROGRAMS, STRANGER, certify, curve_to, tls, until, wraps


def relay(endpoint):
    """Starts a relay to an endpoint. Returns the relay's endpoint, and a bytearray of the relayed bytes."""
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    listener = socket.create_server(("127.0.0.1", 0))
    seen = bytearray()

    def copy(source, target):
        # One end may close while the other end still sends.
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                seen.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept():
        near, _ = listener.accept()
        far = socket.create_connection((host, int(port)))
        for ends in ((near, far), (far, near)):
            threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "tcp://127.0.0.1:%d" % listener.getsockname()[1], seen


def connections(endpoint):
    """Returns the number of established connections that the endpoint accepted."""
    port = int(endpoint.rsplit(":", 1)[1])
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[1].endswith(":%04X" % port) and row[3] == "01" for row in rows)


def test_wrapped_at_both_ends(start, tmp_path):
    at, to = wraps(tmp_path)
    for language in PROGRAMS:
        server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at, language=language)
        between, seen = relay(server.at)
        client = start("connect", "PUSH", between, policy=to, language=language)
        client.do("send what nobody may read")
        assert server.receive() == "received what nobody may read"
        assert b"CURVE" in seen and b"INITIATE" in seen
        assert b"nobody may read" not in seen and b"Socket-Type" not in seen


def test_wrapped_against_stock_libzmq(start, tmp_path):
    at, to = wraps(tmp_path)
    server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    plain = start("connect", "PUSH", server.at, ours=False)
    stranger = start("connect", "PUSH", server.at, *curve_to(STRANGER), ours=False)
    client = start("connect", "PUSH", server.at, *curve_to(CLIENT), ours=False)
    for peer in (plain, stranger, client):
        peer.do("send from " + peer.process.args[-1][-4:])
    client.do("send from a friend")
    assert server.receive() == "received from " + CLIENT[1][-4:]
    assert server.receive() == "received from a friend"
    server = start("bind", "PULL", "tcp://127.0.0.1:*", *CURVE_AT, ours=False)
    client = start("connect", "PUSH", server.at, policy=to)
    client.do("send from one that is wrapped")
    assert server.receive() == "received from one that is wrapped"


def test_a_wrap_ends_loans_of_its_process(start, tmp_path):
    at, _ = wraps(tmp_path)
    receiver = start("bind", "PULL", f"ipc://{tmp_path}/bodies")
    sender = start("connect", "PUSH", receiver.at, policy=at)

    def way_of_a_body():
        sender.do("send-large")
        receiver.do("receive-large")
        return receiver.line()

    until(lambda: way_of_a_body() == "received loan")
    sender.do("bind tcp://127.0.0.1:*")
    assert sender.line().startswith("at tcp")
    assert {way_of_a_body() for _ in range(20)} == {"received copy"}


def test_wrapped_in_tls_at_both_ends(start, tmp_path):
    at, to, _ = tls(tmp_path)
    for servers, clients in (("pyzmq", "pyzmq"), ("C", "pyzmq"), ("pyzmq", "C")):
        server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at, language=servers)
        assert server.failed is None and server.at.startswith("tcp://"), server.said()
        between, seen = relay(server.at)
        client = start("connect", "PUSH", between, policy=to, language=clients)
        assert client.failed is None, client.said()
        client.do("send what nobody may read")
        assert server.receive() == "received what nobody may read"
        # TLS records of a handshake and of data, with the version bytes that all TLS records have.
        assert seen[:2] == b"\x16\x03" and b"\x17\x03\x03" in seen
        assert not any(plain in seen for plain in (b"nobody may read", b"Socket-Type", b"NULL", b"READY"))


def test_wrapped_in_tls_against_others(start, tmp_path):
    """The wrap interoperates with other TLS libraries: Python's OpenSSL exchanges plain ZMTP through it."""
    at, _, ca = tls(tmp_path)
    server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.load_cert_chain(tmp_path / "tls/client.pem", tmp_path / "tls/client-key.pem")
    port = int(server.at.rsplit(":", 1)[1])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as stream:
        assert stream.version() == "TLSv1.3"
        ready = b"\5READY\x0bSocket-Type\0\0\0\4PUSH"
        stream.sendall(b"\xff" + bytes(7) + b"\1\x7f\3\1NULL" + bytes(48) + bytes([4, len(ready)]) + ready + b"\0\5hello")
        assert server.receive() == "received hello"
        # The server rejects a peer with plain ZMTP, and continues to serve its other peers.
        plain = start("connect", "PUSH", server.at, ours=False)
        plain.do("send in plain text")
        stream.sendall(b"\0\4more")
        assert server.receive() == "received more"


def test_a_certificate_that_is_renewed(start, tmp_path):
    at, to, ca = tls(tmp_path)
    server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    client = start("connect", "PUSH", server.at, policy=to)
    client.do("send before")
    assert server.receive() == "received before"

    def shown():
        return ssl.get_server_certificate(server.at.removeprefix("tcp://").rsplit(":", 1))

    before = shown()
    certify(tmp_path, ca, "server", "127.0.0.1")
    until(lambda: shown() != before)
    other = start("connect", "PUSH", server.at, policy=to)
    other.do("send after")
    assert server.receive() == "received after"
    client.do("send still there")
    assert server.receive() == "received still there"
    # If an authority is removed, its clients are disconnected.
    until(lambda: connections(server.at) == 2)
    trustme.CA().cert_pem.write_to_path(tmp_path / "tls/.other.pem")
    os.rename(tmp_path / "tls/.other.pem", tmp_path / "tls/ca.pem")
    until(lambda: not connections(server.at))


def test_a_key_that_is_taken_away(start, tmp_path):
    at, to = wraps(tmp_path)
    server = start("bind", "PULL", "tcp://127.0.0.1:*", policy=at)
    client = start("connect", "PUSH", server.at, policy=to)
    client.do("send before")
    assert server.receive() == "received before"
    assert connections(server.at) == 1
    (tmp_path / "clients/one.pub").unlink()
    until(lambda: not connections(server.at))
