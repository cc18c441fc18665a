"""The exchanges of each pair of socket types. An exchange is a function of two connected sockets."""

import os

import zmq

MIB = 1 << 20

# Messages around each length at which a frame header changes its form, and some larger messages.
MESSAGES = [
    [b""],
    [b"a"],
    [b"x" * 31, b"", b"y" * 33],
    [b"b" * 254],
    [b"c" * 255],
    [b"d" * 256],
    [b"", b""],
    [bytes(range(256)) * 32],
    [b"e" * 65_535, b"f" * 65_536, b"g" * 65_537],
    [b"%d" % part for part in range(100)],
    [os.urandom(MIB)],
    [b"head", os.urandom(MIB), b"", b"tail"],
]

# Number of messages that are sent before the first receive. It is below the sender's high-water mark, because the further capacity
# depends on the reads of the other side.
BURST = 900


def run(exchange, ours, theirs, ours_first, ours_binds, endpoint, secure=None):
    """Runs an exchange. `secure` sets the credentials of the binding and the connecting socket."""
    first, second, body = exchange
    sides = (ours, theirs) if ours_first else (theirs, ours)
    a, b = sides[0].socket(first), sides[1].socket(second)
    for end, kind, routing_id in ((a, first, b"first"), (b, second, b"second")):
        if kind in (zmq.ROUTER, zmq.DEALER):
            end.set(zmq.ROUTING_ID, routing_id)
        if kind == zmq.ROUTER:
            end.set(zmq.ROUTER_MANDATORY, 1)
        if kind in (zmq.PUB, zmq.XPUB, zmq.SUB, zmq.XSUB):  # publishers drop at the high-water mark
            end.set(zmq.SNDHWM, 0)
            end.set(zmq.RCVHWM, 0)
    binding, connecting = (a, b) if ours_first == ours_binds else (b, a)
    if secure:
        secure(binding, connecting)
    connecting.connect(binding.bind(endpoint))
    body(a, b)


def one_way(a, b):
    for message in MESSAGES:
        a.send(*message)
    for message in MESSAGES:
        assert b.recv() == message
    for number in range(BURST):
        a.send(b"%d" % number)
    for number in range(BURST):
        assert b.recv() == [b"%d" % number]


def both_ways(a, b):
    one_way(a, b)
    one_way(b, a)


def request_reply(a, b):
    for message in MESSAGES + [[b"%d" % number] for number in range(300)]:
        a.send(*message)
        assert b.recv() == message
        b.send(*message, b"reply")
        assert a.recv() == message + [b"reply"]


def request_to_router(a, b):
    for message in MESSAGES:
        a.send(*message)
        routing_id, empty, *received = b.recv()
        assert (empty, received) == (b"", message)
        b.send(routing_id, b"", *message)
        assert a.recv() == message


def dealer_to_reply(a, b):
    for message in MESSAGES:
        a.send(b"", *message)
    for message in MESSAGES:
        assert b.recv() == message
        b.send(*message)
    for message in MESSAGES:
        assert a.recv() == [b""] + message


def dealer_to_router(a, b):
    for message in MESSAGES:
        a.send(*message)
        assert b.recv() == [b"first"] + message
        b.send(b"first", *message)
        assert a.recv() == message


def router_to_router(a, b):
    # A ROUTER can send only once it knows the peer. With MANDATORY, earlier sends fail.
    def first_message():
        try:
            a.send(b"second", b"hello")
            return True
        except Exception as error:
            assert "Host unreachable" in str(error) or "unreachable" in str(error).lower(), error
            return False

    while not first_message():
        b.readable(1)
    assert b.recv() == [b"first", b"hello"]
    for message in MESSAGES:
        a.send(b"second", *message)
        assert b.recv() == [b"first"] + message
        b.send(b"first", *message)
        assert a.recv() == [b"second"] + message


def publish(a, b):
    """A PUB cannot report the arrival of a subscription, so it sends until the subscriber has received a message."""

    def settle(marker, wanted):
        while True:
            a.send(marker)
            if b.readable(1):
                break
        a.send(wanted)
        while (got := b.recv()) != [wanted]:
            assert got == [marker], got

    subscribe(b, b"apple")
    settle(b"apple:", b"apple!")
    subscribe(b, b"pear")
    settle(b"pear:", b"pear!")
    unsubscribe(b, b"apple")
    # Subscriptions travel in order. Once `fig` works, the publisher has removed `apple`.
    subscribe(b, b"fig")
    settle(b"fig:", b"fig!")
    for message in ([b"apple", b"no"], [b"pear", b"yes"], [b"other"], [b"fig"], [b"fi"], [b"figs", b"x" * MIB]):
        a.send(*message)
    for message in ([b"pear", b"yes"], [b"fig"], [b"figs", b"x" * MIB]):
        assert b.recv() == message


def publish_verbatim(a, b):
    """An XPUB receives the subscriptions, so the subscriber receives all later messages."""
    subscribe(b, b"")
    assert first_from(b, a) == [b"\x01"]
    one_way(a, b)
    subscribe(b, b"t" * 300)
    assert a.recv() == [b"\x01" + b"t" * 300]
    unsubscribe(b, b"")
    assert a.recv() == [b"\x00"]
    a.send(b"t" * 299)
    a.send(b"t" * 300)
    assert b.recv() == [b"t" * 300]


def upstream_messages(a, b):
    """An XSUB may also send ordinary messages to an XPUB."""
    b.send(b"\x01topic")
    assert first_from(b, a) == [b"\x01topic"]
    b.send(b"hello")
    assert a.recv() == [b"hello"]
    b.send(b"\x00topic")
    assert a.recv() == [b"\x00topic"]
    a.send(b"topic")
    b.send(b"\x01next")
    assert a.recv() == [b"\x01next"]
    a.send(b"next")
    assert b.recv() == [b"next"]


def first_from(sender, receiver):
    """Receives the first message. A binding sender sends it in its next call, when it processes the new connection."""
    while not receiver.readable(1):
        sender.readable(1)
    return receiver.recv()


def subscribe(socket, topic):
    subscription(socket, zmq.SUBSCRIBE, b"\x01", topic)


def unsubscribe(socket, topic):
    subscription(socket, zmq.UNSUBSCRIBE, b"\x00", topic)


def subscription(socket, option, prefix, topic):
    try:
        socket.set(option, topic)
    except Exception:  # an XSUB lacks this option, and sends the message itself
        socket.send(prefix + topic)


EXCHANGES = [
    (zmq.PUSH, zmq.PULL, one_way),
    (zmq.PAIR, zmq.PAIR, both_ways),
    (zmq.REQ, zmq.REP, request_reply),
    (zmq.REQ, zmq.ROUTER, request_to_router),
    (zmq.DEALER, zmq.REP, dealer_to_reply),
    (zmq.DEALER, zmq.DEALER, both_ways),
    (zmq.DEALER, zmq.ROUTER, dealer_to_router),
    (zmq.ROUTER, zmq.ROUTER, router_to_router),
    (zmq.PUB, zmq.SUB, publish),
    (zmq.PUB, zmq.XSUB, publish),
    (zmq.XPUB, zmq.SUB, publish_verbatim),
    (zmq.XPUB, zmq.XSUB, publish_verbatim),
    (zmq.XPUB, zmq.XSUB, upstream_messages),
]
