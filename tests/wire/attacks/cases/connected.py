"""Peers that completed the handshake of a mechanism without authentication.

Such a peer may use memory for its metadata, for ZMQ_RCVHWM messages and one more read from it, and for ZMQ_SNDHWM messages to it.
"""

import itertools
import socket
import struct

import zmtp
from harness import MIB, case
from ring import Ring

KIB = 1 << 10
LITTLE = 4096
# Octets that the victim may read from one connection beyond its limit: one read, and the segment with its bytes.
READ = 256 * KIB
HWM = "option=24:10"
SEND_HWM = "option=23:10"
PINGS = zmtp.ping(context=b"c" * 16) * 20_000


@case("PINGs whose PONGs are not read, tcp", type="PULL", options=[HWM, "wide=22:1000"])
def pings(attack):
    stream = attack.connect(receive_buffer=LITTLE)
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, PINGS)


@case("PINGs whose PONGs are not read, ipc", type="PULL", bind="ipc://FOLDER/pings", options=[HWM])
def pings_over_ipc(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, PINGS)


@case("PINGs whose PONGs are not read, ws", type="PULL", bind="ws://127.0.0.1:*/zmq", options=[HWM])
def pings_over_ws(attack):
    stream = attack.connect(receive_buffer=LITTLE)
    zmtp.ws_open(stream, attack.endpoint)
    stream.sendall(zmtp.ws_ready("PUSH"))
    attack.flood(stream, zmtp.ws_frame(zmtp.WS_PING, bytes(125)) * 1000)


@case("PINGs of every time to live", type="PULL", options=[HWM])
def times_to_live(attack):
    """One timer for each PING would need 100 bytes or more, and last for hours."""
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, b"".join(zmtp.ping(ttl) for ttl in itertools.chain([0, 1, 3], range(65535, 40_000, -1))))


@case("commands that nobody knows", type="PULL", options=[HWM])
def unknown_commands(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.command("WHAT", bytes(100)) * 1000)


@case("messages of no bytes to a receiver that is busy", type="PULL", options=[HWM], memory=READ)
def empty_messages(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.frame(b"") * 100_000)


@case("messages of one octet", type="PULL", mode="receive", options=[HWM])
def small_messages(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.frame(b"x") * 100_000)


@case("messages an octet at a time", type="PULL", mode="receive", options=[HWM])
def octets(attack):
    """Each octet is a packet, and each frame has three octets."""
    stream = attack.connect()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    zmtp.shake_hands(stream, "PUSH")
    message = zmtp.frame(b"x")
    for number in attack.times(30_000):
        stream.send(message[number % 3 :][:1])
        attack.count(swallowed=1)


@case("messages to a receiver that is busy", type="ROUTER", options=[HWM], memory=10 * 100 * KIB + READ)
def messages(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "DEALER")
    attack.flood(stream, zmtp.frame(bytes(100 * KIB)))


# Value of ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS, and the setting with the option's number.
HELD = 4 * MIB
MOST_HELD = f"wide={0x54410010}:{HELD}"


@case("subscriptions without end, peer after peer", type="PUB", mode="send", options=[MOST_HELD], memory=HELD)
def subscriptions(attack):
    """The victim disconnects each peer at the limit, and frees the memory of its subscriptions."""
    for peer in range(5):
        stream = attack.connect()
        zmtp.shake_hands(stream, "SUB")
        topics = (zmtp.subscribe(f"{peer}-{number:08}".encode()) for number in range(400_000))
        try:
            for some in iter(lambda: b"".join(itertools.islice(topics, 1000)), b""):
                stream.sendall(some)
        except ConnectionError:
            pass
        attack.ended(stream)
        attack.drop(stream)


# Number of topics, and bytes for one topic of eleven octets with the allocator's overhead.
MILLION, TOPIC = 1_000_000, 180


@case("a million subscriptions of one peer", type="PUB", mode="send", memory=MILLION * TOPIC)
def million(attack):
    """The default limit is about three million subscriptions of this length."""
    for _ in attack.rounds():
        stream = attack.connect()
        zmtp.shake_hands(stream, "SUB")
        for first in range(0, MILLION, 1000):
            stream.sendall(b"".join(zmtp.subscribe(b"topic%06d" % number) for number in range(first, first + 1000)))
        stream.sendall(zmtp.ping())
        # The answer shows that the victim processed the subscriptions. Messages without a matching subscription are not
        # sent.
        zmtp.read_frame(stream)


# Setting without a limit for the bytes of subscriptions.
NO_LIMIT = f"wide={0x54410010}:-1"
SPACE = 768 * MIB


@case("subscriptions without end under RLIMIT_AS", type="PUB", mode="send", options=[NO_LIMIT], limits={"AS": SPACE}, memory=SPACE)
def subscriptions_without_room(attack):
    """The victim disconnects each peer when the memory for more subscriptions is exhausted."""
    for peer in range(3):
        stream = attack.connect()
        zmtp.shake_hands(stream, "SUB")
        rest = bytes(8000)
        try:
            for number in range(SPACE // 4000):
                stream.sendall(zmtp.subscribe(f"{peer}-{number}".encode() + rest))
        except ConnectionError:
            pass
        attack.ended(stream)
        attack.drop(stream)


@case("a message of 3 GB under RLIMIT_AS", type="PULL", limits={"AS": 1 << 30}, memory=8 * MIB)
def great_frame(attack):
    for _ in attack.times(20):
        stream = attack.connect()
        zmtp.shake_hands(stream, "PUSH")
        stream.sendall(b"\x02" + (3 << 30).to_bytes(8, "big"))
        attack.flood(stream, bytes(MIB), volume=4 * MIB)
        attack.drop(stream)


@case("a message beyond ZMQ_MAXMSGSIZE", type="PULL", options=["wide=22:1000"], swallowed=8 * MIB)
def too_great(attack):
    for _ in attack.rounds():
        stream = attack.connect()
        zmtp.shake_hands(stream, "PUSH")
        stream.sendall(b"\x02" + (1 << 30).to_bytes(8, "big"))
        attack.flood(stream, bytes(MIB))


# Default of the longest message, with ZMQ_MAXMSGSIZE.
LONGEST_MESSAGE = 64 * MIB


@case("a message of endless parts", type="PULL", options=[HWM, "wide=22:1000"], memory=LONGEST_MESSAGE)
def endless_parts(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.frame(bytes(100), zmtp.MORE) * 10_000)


def unread(attack, socket_type, *first):
    """Connects twenty peers that stop reading after the handshake."""
    for _ in range(20):
        stream = attack.connect(receive_buffer=LITTLE)
        zmtp.shake_hands(stream, socket_type)
        stream.sendall(b"".join(first) + zmtp.ping())
        # The PONG shows that the victim has read the earlier input.
        zmtp.read_frame(stream)


BODY = 10 * KIB
# Each connection queues ten messages and the bytes of one write.
WAITING = 20 * (10 * BODY + READ)


@case("subscribers that read nothing", type="PUB", mode="send", options=[SEND_HWM, f"body={BODY}"], memory=WAITING)
def slow_subscribers(attack):
    unread(attack, "SUB", zmtp.subscribe(b""))


@case("subscribers that read nothing, none may miss a message", type="XPUB", mode="send",
      options=[SEND_HWM, f"body={BODY}", "option=69:1"], memory=WAITING)
def slow_subscribers_nodrop(attack):
    unread(attack, "SUB", zmtp.subscribe(b""))


@case("workers that read nothing", type="PUSH", mode="send", options=[SEND_HWM, f"body={BODY}"], memory=WAITING)
def slow_workers(attack):
    unread(attack, "PULL")


@case("askers that read no answers", mode="echo", options=[SEND_HWM, HWM], memory=20 * (20 * BODY + 2 * READ))
def slow_askers(attack):
    streams = [attack.connect(receive_buffer=LITTLE) for _ in range(20)]
    for stream in streams:
        zmtp.shake_hands(stream, "DEALER")
    attack.flood(streams, zmtp.frame(bytes(BODY)) * 10, volume=64 * MIB)


@case("subscriptions to a publisher that is busy", type="PUB", memory=4 * MIB)
def unread_subscriptions(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "SUB")
    attack.flood(stream, b"".join(zmtp.subscribe(struct.pack(">I", n) * 10) for n in range(20_000)))


@case("groups joined at a RADIO that is busy", type="RADIO", memory=4 * MIB)
def unread_groups(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "DISH")
    attack.flood(stream, b"".join(zmtp.command("JOIN", b"%d" % n) for n in range(20_000)))


def one_name(attack, names):
    for name in names:
        stream = attack.connect()
        stream.sendall(zmtp.greeting() + zmtp.ready("DEALER", ("Identity", name)))
        zmtp.read_exactly(stream, 64)
        zmtp.read_frame(stream)


@case("a thousand peers of one routing id", type="ROUTER", options=["option=19:1000"], memory=1000 * 16 * KIB, then="look 1000")
def same_names(attack):
    one_name(attack, [b"the same"] * 1000)


@case("a thousand peers of different ones, to compare", type="ROUTER", options=["option=19:1000"], memory=1000 * 16 * KIB, then="look 1000")
def different_names(attack):
    one_name(attack, [b"%d" % n for n in range(1000)])


@case("bells and nothing else, ipc", type="PULL", bind="ipc://FOLDER/bells")
def bells(attack):
    ring = Ring()
    stream = attack.connect()
    try:
        ring.offer(stream, zmtp.greeting())
    except PermissionError:
        # The victim refuses descriptors from a stranger. ipc/bells.c covers a peer that has completed its handshake.
        return
    zmtp.read_exactly(stream, 64)
    ready = zmtp.ready("PUSH")
    ring.switch(64 + len(ready))
    stream.sendall(ready)
    attack.flood(stream, bytes(64 * KIB), volume=16 * MIB)
