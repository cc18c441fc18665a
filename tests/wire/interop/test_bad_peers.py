"""Peers that misbehave: their connection ends, the memory stays bounded, and everybody else goes on."""

import contextlib
import itertools
import socket
import struct

import wire
import zmq
from sides import Ours, Theirs, wait_for_event
from wire import LONG, MORE, Listener, Peer, Zmtp3

# What the memory of the process may grow by; a peer that announces terabytes must not get them.
BOUND = 64 << 20

# A connection that is given up is reported by one of these.
ENDED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_DISCONNECTED,
)
GREETING = Zmtp3.greeting(None, 1)


def ready(socket_type):
    return command("READY", wire.metadata(("Socket-Type", socket_type)))


def command(name, data=b""):
    return wire.frame(bytes([len(name)]) + name.encode() + data, wire.COMMAND)


# Before the handshake is done: everything sent at once; the connection must be closed by our side.
BAD_HANDSHAKES = {
    "a greeting of another protocol": b"\xff" + b"HTTP/1.1 400 Bad Request\r\n\r\n" * 4,
    "unknown mechanism": Zmtp3.greeting(None, 1, b"MYSTERY"),
    "no mechanism": Zmtp3.greeting(None, 1, b""),
    "socket type that does not fit": GREETING + ready(b"PUB"),
    "socket type that does not exist": GREETING + ready(b"NONSENSE"),
    "a message instead of READY": GREETING + wire.frame(b"hello"),
    "an unknown command instead of READY": GREETING + command("HELLO"),
    "READY with a property cut short": GREETING + command("READY", b"\x0bSocket-Type\x00\x00\x00\xffPUSH"),
    "READY with a name of 255 and nothing behind it": GREETING + command("READY", b"\xff"),
    "a command name longer than the command": GREETING + wire.frame(b"\xffREADY", wire.COMMAND),
    "an empty command": GREETING + wire.frame(b"", wire.COMMAND),
    "READY of 2^63 bytes": GREETING + struct.pack(">BQ", wire.COMMAND | LONG, 1 << 63),
    "READY of 2^62 bytes": GREETING + struct.pack(">BQ", wire.COMMAND | LONG, 1 << 62) + b"x" * 1000,
}

# After a good handshake as a PUSH.
BAD_TRAFFIC = {
    "a frame of 2^63 bytes": struct.pack(">BQ", LONG, 1 << 63),
    "a frame of 2^64-1 bytes": struct.pack(">BQ", LONG, (1 << 64) - 1) + b"x" * 10_000,
    "a command frame with MORE (libzmq lets it pass)": struct.pack(">BB", wire.COMMAND | MORE, 5) + b"\x04PING",
}

# To a REQ: whatever is no reply ends the connection, as in libzmq.
NO_REPLIES = {
    "no delimiter": wire.frame(b"abc", MORE) + wire.frame(b"x"),
    "an empty frame alone": wire.frame(b""),
    "a body alone": wire.frame(b"body"),
    "a request id without a delimiter": wire.frame(b"abcd", MORE) + wire.frame(b"x"),
    "the first frame of it": wire.frame(b"abc", MORE),
    "a reply and then a body alone": wire.frame(b"", MORE) + wire.frame(b"x") + wire.frame(b"y"),
}

# Legal or not yet decided: nothing is announced, the connection just ends when the peer goes.
SUDDEN_ENDS = {
    "nothing at all": b"",
    "one byte": b"\xff",
    "half a signature": b"\xff\0\0\0\0",
    "half a greeting": GREETING[:40],
    "a greeting without READY": GREETING,
    "half of READY": GREETING + ready(b"PUSH")[:10],
    "half a frame header": GREETING + ready(b"PUSH") + struct.pack(">BQ", LONG, 1000)[:5],
    "half a frame": GREETING + ready(b"PUSH") + wire.frame(b"x" * 1000)[:500],
    "half a message": GREETING + ready(b"PUSH") + wire.frame(b"first part", MORE),
    "a terabyte announced": GREETING + ready(b"PUSH") + struct.pack(">BQ", LONG, 1 << 40) + b"x" * 100_000,
}


def cases():
    for name, data in BAD_HANDSHAKES.items():
        yield f"bad handshake: {name}", bad_handshake(data)
    for name, data in BAD_TRAFFIC.items():
        yield f"bad traffic: {name}", bad_traffic(data)
    for (name, data), dials in itertools.product(NO_REPLIES.items(), (False, True)):
        yield f"no reply to a REQ that {'connects' if dials else 'binds'}: {name}", no_reply(data, dials)
    yield "unsolicited replies: an idle REQ keeps few and sees the end", unsolicited_replies
    for (name, data), reset in itertools.product(SUDDEN_ENDS.items(), (False, True)):
        yield f"sudden {'reset' if reset else 'end'}: {name}", sudden_end(data, reset)
    yield "half a greeting and waiting: HANDSHAKE_IVL", handshake_timeout
    yield "MAXMSGSIZE", too_large
    yield "we connect to half a greeting: tried again", half_listener
    yield "we connect to garbage: others go on", garbage_listener
    yield "1,000 connections that come and go", many
    yield "random bytes", random_bytes


@contextlib.contextmanager
def pull_with_witness(library, options=(), client_options=()):
    """Our PULL with a monitor, and a libzmq PUSH whose messages must keep coming through."""
    ours, theirs = Ours(library), Theirs()
    pull = ours.socket(zmq.PULL)
    for option, value in options:
        pull.set(option, value)
    monitor = pull.monitor()
    endpoint = pull.bind("tcp://127.0.0.1:*")
    push = theirs.socket(zmq.PUSH)
    for option, value in client_options:
        push.set(option, value)
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
    monitor.close()
    pull.close()
    push.close()
    ours.term()
    theirs.term()


def peak_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def bad_handshake(data):
    def run(library):
        with pull_with_witness(library) as (_, endpoint, monitor, witness):
            peer = Peer.connect(endpoint)
            peer.write(data)
            wait_for_event(monitor, *ENDED)
            assert peer.closed_by_peer()
            witness()

    return run


def bad_traffic(data):
    def run(library):
        with pull_with_witness(library) as (pull, endpoint, monitor, witness):
            peer = Zmtp3.connect(endpoint).handshake(b"PUSH")
            peer.send(b"good")
            assert pull.recv() == [b"good"]
            peer.write(data)
            wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
            assert peer.closed_by_peer()
            witness()

    return run


def req_with_peer(library, dials=False):
    """Our REQ with a monitor, which gets to know a raw REP."""
    ours = Ours(library)
    req = ours.socket(zmq.REQ)
    req.set(zmq.RCVHWM, 10)
    monitor = req.monitor()
    if dials:
        listener = Listener()
        req.connect(listener.endpoint)
        peer = listener.accept(Zmtp3).handshake(b"REP")
    else:
        peer = Zmtp3.connect(req.bind("tcp://127.0.0.1:*")).handshake(b"REP")
    wait_for_event(monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    return ours, req, monitor, peer


def no_reply(data, dials):
    def run(library):
        ours, req, monitor, peer = req_with_peer(library, dials)
        peer.write(data)
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        for socket in (monitor, req):
            socket.close()
        ours.term()

    return run


def unsolicited_replies(library):
    ours, req, monitor, peer = req_with_peer(library)
    before = peak_memory()
    reply = wire.frame(b"", MORE) + wire.frame(b"x" * 10_000)
    peer.stream.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:  # until the buffers of the system are full
            peer.stream.send(reply)
    assert peak_memory() - before < BOUND
    peer.stream.shutdown(socket.SHUT_WR)
    # The end lies behind more than the system takes before somebody reads: the program looks at its socket now and then.
    while not monitor.readable(10):
        assert not req.readable(0)
    wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
    assert peak_memory() - before < BOUND
    for each in (monitor, req):
        each.close()
    ours.term()


def sudden_end(data, reset):
    def run(library):
        with pull_with_witness(library) as (pull, endpoint, monitor, witness):
            peer = Peer.connect(endpoint)
            peer.write(data)
            wait_for_event(monitor, zmq.EVENT_ACCEPTED)
            witness()
            peer.reset() if reset else peer.close()
            wait_for_event(monitor, *ENDED)
            witness()
            # Nothing of the unfinished message came through.
            assert not pull.readable(0)

    return run


def handshake_timeout(library):
    with pull_with_witness(library, [(zmq.HANDSHAKE_IVL, 200)]) as (_, endpoint, monitor, witness):
        peer = Peer.connect(endpoint)
        peer.write(GREETING[:20])
        witness()
        wait_for_event(monitor, *ENDED)
        assert peer.closed_by_peer()


def too_large(library):
    with pull_with_witness(library, [(zmq.MAXMSGSIZE, 1000)]) as (pull, endpoint, monitor, witness):
        peer = Zmtp3.connect(endpoint).handshake(b"PUSH")
        peer.send(b"x" * 1000)
        assert pull.recv() == [b"x" * 1000]
        peer.write(struct.pack(">BQ", LONG, 1001))
        wait_for_event(monitor, zmq.EVENT_DISCONNECTED)
        assert peer.closed_by_peer()
        witness()


def half_listener(library):
    ours = Ours(library)
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    listener = Listener()
    push.connect(listener.endpoint)
    for data in (b"", GREETING[:5], GREETING[:40], GREETING):
        peer = listener.accept(Peer)
        peer.write(data)
        peer.close()
    peer = listener.accept(Zmtp3).handshake(b"PULL")
    push.send(b"at last")
    assert peer.recv() == [b"at last"]
    push.close()
    ours.term()


def garbage_listener(library):
    ours, theirs = Ours(library), Theirs()
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
    for socket in (push, pull):
        socket.close()
    ours.term()
    theirs.term()


def many(library):
    with pull_with_witness(library) as (_, endpoint, monitor, witness):
        data = list(SUDDEN_ENDS.values())
        for number in range(1_000):
            peer = Peer.connect(endpoint)
            peer.write(data[number % len(data)])
            peer.close()
            while monitor.readable(0):  # a monitor that is not read may hold up libzmq
                monitor.recv()
            if number % 100 == 0:
                witness()


def random_bytes(library):
    state = 1
    with pull_with_witness(library) as (pull, endpoint, monitor, witness):
        for number in range(200):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise = state.to_bytes(8, "big") * (state >> 60)
            prefix = (b"", wire.SIGNATURE, GREETING)[number % 3]
            peer = Peer.connect(endpoint)
            with contextlib.suppress(ConnectionError):
                peer.write(prefix + noise)
            peer.close()
            while monitor.readable(0):
                monitor.recv()
        witness()
        assert not pull.readable(0)
