"""A peer that misbehaves loses its connection. The memory stays bounded, and other peers continue to work."""

import contextlib
import socket
import struct

import pytest
import zmq
from sides import wait_for_event
from witness import ENDED, bounded_memory, pull_with_witness
from zmtp import COMMAND, LONG, MORE, SIGNATURE, Listener, Peer, Zmtp3, command, frame, greeting, ready

GREETING = greeting()

# Bytes that a peer sends at once during the handshake. Our side must close the connection.
BAD_HANDSHAKES = {
    "a greeting of another protocol": b"\xff" + b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4,
    "unknown mechanism": greeting(b"MYSTERY"),
    "no mechanism": greeting(b""),
    "socket type that does not fit": GREETING + ready("PUB"),
    "socket type that does not exist": GREETING + ready("NONSENSE"),
    "a message instead of READY": GREETING + frame(b"hello"),
    "an unknown command instead of READY": GREETING + command("HELLO"),
    "READY with a property cut short": GREETING + command("READY", b"\x0bSocket-Type\x00\x00\x00\xffPUSH"),
    "READY with a name of 255 and nothing behind it": GREETING + command("READY", b"\xff"),
    "a command name longer than the command": GREETING + frame(b"\xffREADY", COMMAND),
    "an empty command": GREETING + frame(b"", COMMAND),
    "READY of 2^63 bytes": GREETING + struct.pack(">BQ", COMMAND | LONG, 1 << 63),
    "READY of 2^62 bytes": GREETING + struct.pack(">BQ", COMMAND | LONG, 1 << 62) + b"x" * 1000,
}

# Bytes that a PUSH sends after a good handshake.
BAD_TRAFFIC = {
    "a frame of 2^63 bytes": struct.pack(">BQ", LONG, 1 << 63),
    "a frame of 2^64-1 bytes": struct.pack(">BQ", LONG, (1 << 64) - 1) + b"x" * 10_000,
    "a command frame with MORE (libzmq lets it pass)": struct.pack(">BB", COMMAND | MORE, 5) + b"\x04PING",
}

# Messages to a REQ that are no replies. They end the connection, as in libzmq.
NO_REPLIES = {
    "no delimiter": frame(b"abc", MORE) + frame(b"x"),
    "an empty frame alone": frame(b""),
    "a body alone": frame(b"body"),
    "a request id without a delimiter": frame(b"abcd", MORE) + frame(b"x"),
    "the first frame of it": frame(b"abc", MORE),
    "a reply and then a body alone": frame(b"", MORE) + frame(b"x") + frame(b"y"),
}

# Valid or incomplete bytes. The monitor reports no event, and the connection ends when the peer closes it.
SUDDEN_ENDS = {
    "nothing at all": b"",
    "one byte": b"\xff",
    "half a signature": b"\xff\0\0\0\0",
    "half a greeting": GREETING[:40],
    "a greeting without READY": GREETING,
    "half of READY": GREETING + ready("PUSH")[:10],
    "half a frame header": GREETING + ready("PUSH") + struct.pack(">BQ", LONG, 1000)[:5],
    "half a frame": GREETING + ready("PUSH") + frame(b"x" * 1000)[:500],
    "half a message": GREETING + ready("PUSH") + frame(b"first part", MORE),
    "a terabyte announced": GREETING + ready("PUSH") + struct.pack(">BQ", LONG, 1 << 40) + b"x" * 100_000,
}


def named(cases, prefix=""):
    """Returns parameters that have the keys of a table as case names."""
    return [pytest.param(data, id=prefix + name) for name, data in cases.items()]


@pytest.mark.parametrize("data", named(BAD_HANDSHAKES, "bad handshake: "))
def test_bad_handshake_ends_the_connection(ours, theirs, data):
    with pull_with_witness(ours, theirs) as (_, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write(data)
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()
        witness()


@pytest.mark.parametrize("data", named(BAD_TRAFFIC, "bad traffic: "))
def test_bad_traffic_ends_the_connection(ours, theirs, data):
    with pull_with_witness(ours, theirs) as (pull, endpoint, monitor, witness):
        peer = Zmtp3.connect(endpoint).handshake("PUSH")
        peer.send(b"good")
        assert pull.recv() == [b"good"]
        peer.write(data)
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        witness()


def req_with_peer(ours, dials=False):
    """Returns our REQ, its monitor, and a connected REP from raw bytes."""
    req = ours.socket(zmq.REQ)
    req.set(zmq.RCVHWM, 10)
    monitor = req.monitor()
    if dials:
        listener = Listener()
        req.connect(listener.endpoint)
        peer = listener.accept(Zmtp3).handshake("REP")
    else:
        peer = Zmtp3.connect(req.bind("tcp://127.0.0.1:*")).handshake("REP")
    wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    return req, monitor, peer


@pytest.mark.parametrize(
    ("data", "dials"),
    [
        pytest.param(data, dials, id=f"no reply to a REQ that {'connects' if dials else 'binds'}: {name}")
        for name, data in NO_REPLIES.items()
        for dials in (False, True)
    ],
)
def test_no_reply_ends_the_connection(ours, data, dials):
    _req, monitor, peer = req_with_peer(ours, dials)
    peer.write(data)
    wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
    assert peer.closed_by_peer()


def test_idle_req_keeps_few_unsolicited_replies_and_sees_the_end(ours):
    req, monitor, peer = req_with_peer(ours)
    reply = frame(b"", MORE) + frame(b"x" * 10_000)
    with bounded_memory():
        peer.stream.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:  # fills the buffers of the system
                peer.stream.send(reply)
        peer.stream.shutdown(socket.SHUT_WR)
        # The end of the stream comes after more bytes than the system buffers, so the program must poll its socket from time to time.
        while not monitor.readable(10):
            assert not req.readable(0)
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)


@pytest.mark.parametrize(
    ("data", "reset"),
    [
        pytest.param(data, reset, id=f"sudden {'reset' if reset else 'end'}: {name}")
        for name, data in SUDDEN_ENDS.items()
        for reset in (False, True)
    ],
)
def test_sudden_end_leaves_others_alone(ours, theirs, data, reset):
    with pull_with_witness(ours, theirs) as (pull, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write(data)
        wait_for_event(monitor, zmq.EVENT_ACCEPTED)
        witness()
        peer.reset() if reset else peer.close()
        wait_for_event(monitor, *ENDED)
        witness()
        # No part of the unfinished message was delivered.
        assert not pull.readable(0)


def test_handshake_ivl_ends_half_a_greeting(ours, theirs):
    with pull_with_witness(ours, theirs, options=[(zmq.HANDSHAKE_IVL, 200)]) as (_, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write(GREETING[:20])
        witness()
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()


def test_maxmsgsize(ours, theirs):
    with pull_with_witness(ours, theirs, options=[(zmq.MAXMSGSIZE, 1000)]) as (pull, endpoint, monitor, witness):
        peer = Zmtp3.connect(endpoint).handshake("PUSH")
        peer.send(b"x" * 1000)
        assert pull.recv() == [b"x" * 1000]
        peer.write(struct.pack(">BQ", LONG, 1001))
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        witness()


def test_connects_again_after_half_a_greeting(ours):
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    listener = Listener()
    push.connect(listener.endpoint)
    for data in (b"", GREETING[:5], GREETING[:40], GREETING):
        peer = listener.accept(Peer)
        peer.write(data)
        peer.close()
    peer = listener.accept(Zmtp3).handshake("PULL")
    push.send(b"at last")
    assert peer.recv() == [b"at last"]


def test_garbage_of_a_server_leaves_other_servers_alone(ours, theirs):
    pull = ours.socket(zmq.PULL)
    push = theirs.socket(zmq.PUSH)
    listener = Listener()
    pull.connect(listener.endpoint)
    pull.connect(push.bind("tcp://127.0.0.1:*"))
    push.send(b"before")
    assert pull.recv() == [b"before"]
    peer = listener.accept(Peer)
    peer.write(GREETING + b"HTTP/1.1 400 Bad Request\r\n\r\n" * 8)
    assert peer.closed_by_peer()
    push.send(b"after")
    assert pull.recv() == [b"after"]


def test_1000_connections_come_and_go(ours, theirs):
    with pull_with_witness(ours, theirs) as (_, endpoint, monitor, witness):
        data = list(SUDDEN_ENDS.values())
        for number in range(1_000):
            peer = Peer.connect(endpoint)
            peer.write(data[number % len(data)])
            peer.close()
            while monitor.readable(0):  # an unread monitor may block libzmq
                monitor.recv()
            if number % 100 == 0:
                witness()


def test_random_bytes(ours, theirs):
    state = 1
    with pull_with_witness(ours, theirs) as (pull, endpoint, monitor, witness):
        for number in range(200):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise = state.to_bytes(8, "big") * (state >> 60)
            prefix = (b"", SIGNATURE, GREETING)[number % 3]
            peer = Peer.connect(endpoint)
            with contextlib.suppress(ConnectionError):
                peer.write(prefix + noise)
            peer.close()
            while monitor.readable(0):
                monitor.recv()
        witness()
        assert not pull.readable(0)
