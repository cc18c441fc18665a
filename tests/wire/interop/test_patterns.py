"""All patterns work between our library and libzmq 4.3.5: both ways, with each side binding, over tcp and ipc."""

import itertools

import exchanges
import pytest
import zmq
from sides import own_tcp


def cases():
    for exchange, ours_first, ours_binds, transport in itertools.product(
        exchanges.EXCHANGES, (True, False), (True, False), ("tcp", "ipc")
    ):
        names = [zmq.SocketType(kind).name for kind in exchange[:2]]
        names[0 if ours_first else 1] += " (ours)"
        binds = "ours" if ours_binds else "theirs"
        name = f"{' to '.join(names)} over {transport}, {binds} binds: {exchange[2].__name__}"
        yield pytest.param(exchange, ours_first, ours_binds, transport, id=name)


@pytest.mark.parametrize(("exchange", "ours_first", "ours_binds", "transport"), list(cases()))
def test_exchange(ours, theirs, exchange, ours_first, ours_binds, transport, tmp_path):
    endpoint = {"tcp": "tcp://127.0.0.1:*", "ipc": f"ipc://{tmp_path}/socket"}[transport]
    exchanges.run(exchange, ours, theirs, ours_first, ours_binds, endpoint)


def test_inproc_within_ours(ours):
    a, b = ours.socket(zmq.PUSH), ours.socket(zmq.PULL)
    a.connect("inproc://later")
    b.bind("inproc://later")
    a.set(zmq.SNDHWM, 0)
    for message in exchanges.MESSAGES:
        a.send(*message)
    for message in exchanges.MESSAGES:
        assert b.recv() == message


def test_ours_reconnects_after_their_restart_with_whole_messages_only(ours, theirs):
    push = ours.socket(zmq.PUSH)
    push.set(zmq.RECONNECT_IVL, 10)
    pull = theirs.socket(zmq.PULL)
    endpoint = pull.bind(own_tcp())
    push.connect(endpoint)
    for round_number in range(5):
        last = -1
        for number in range(200):
            push.send(b"%d" % number, b"m" * 5_000, b"%d" % number)
        while last < 150:
            head, body, tail = pull.recv()
            assert head == tail and body in (b"", b"m" * 5_000)
            last = int(head) if body else -1
        pull.close()
        pull = theirs.socket(zmq.PULL)
        while True:  # the port becomes free when the old socket is completely closed
            try:
                pull.bind(endpoint)
                break
            except zmq.ZMQError as error:
                assert error.errno == zmq.EADDRINUSE, error
        # Messages in transit are lost as a whole. Messages sent before the sender notices the old end may also be
        # lost.
        marker = b"marker %d" % round_number
        seen = b""
        while seen != marker:
            push.send(marker, b"", marker)
            while seen != marker and pull.readable(20):
                seen, _, tail = pull.recv()
                assert seen == tail
