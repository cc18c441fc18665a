"""Attacks that only a policy bounds (docs/operate/policy.md). libzmq has no policies, so its results show the attack without limits."""

import itertools
import select
import struct

import zmtp
from harness import MIB, STALL_S, case

KIB = 1 << 10
HWM = "option=24:10"
# With zap, the good client connects from 127.0.0.2.
ELSEWHERE = {"mode": "echo", "security": "zap"}


@case("silent strangers of one address, limited", policy={"connections_per_address": 50}, options=["option=19:1000"], memory=MIB, descriptors=50, **ELSEWHERE)
def silent(attack):
    for _ in range(1000):
        try:
            attack.connect()
        except ConnectionError:
            pass


@case("more strangers of one address than descriptors, limited", policy={"connections_per_address": 10}, limits={"NOFILE": 64}, memory=MIB, **ELSEWHERE)
def no_descriptors(attack):
    """The victim closes connections above the limit, which keeps a descriptor free for a later client."""
    for stream in [attack.connect() for _ in range(100)]:
        # The victim sends an accepted stream its greeting, or closes it.
        select.select([stream], [], [], STALL_S)


@case("connections that come and go, limited", mode="echo", policy={"handshakes_per_second": 200}, options=["option=19:300"], memory=0, descriptors=300)
def come_and_go(attack):
    """A new client waits behind the connections in the backlog: half a second at most by default, and 1.5 seconds here."""
    for _ in attack.times(300):
        attack.drop(attack.connect())


# A multipart message may have 64 MiB even with a smaller limit for its parts.
@case("a message of endless parts, limited by a policy", type="PULL", options=[HWM], policy={"message_bytes": 1000}, memory=64 * MIB)
def endless_parts(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.frame(bytes(100), zmtp.MORE) * 10_000)


@case("parts of one octet, a million and more", type="PULL", mode="receive", options=[HWM, f"wide={0x54410003}:{4 * MIB}"], memory=24 * MIB)
def small_parts(attack):
    """The victim also counts the header of each part, which has two octets."""
    for _ in attack.rounds():
        stream = attack.connect()
        zmtp.shake_hands(stream, "PUSH")
        attack.flood(stream, zmtp.frame(b"x", zmtp.MORE) * 10_000)


@case("a million subscriptions, limited by a policy", type="PUB", mode="send", policy={"subscription_bytes_per_peer": 4 * MIB}, memory=4 * MIB)
def subscriptions(attack):
    for peer in attack.times(3):
        stream = attack.connect()
        zmtp.shake_hands(stream, "SUB")
        topics = (zmtp.subscribe(b"%d-%08d" % (peer, number)) for number in range(1_000_000))
        try:
            for some in iter(lambda: b"".join(itertools.islice(topics, 1000)), b""):
                stream.sendall(some)
        except ConnectionError:
            pass
        attack.ended(stream)
        attack.drop(stream)


@case("half a greeting, the handshakes limited", mode="echo", policy={"handshakes": 50}, options=["option=19:1000"], memory=MIB, descriptors=51)
def half(attack):
    """Each new connection ends the oldest incomplete handshake."""
    for _ in range(1000):
        try:
            attack.connect().sendall(zmtp.greeting()[:32])
        except ConnectionError:
            pass


@case("64 KiB of READY begun, limited", mode="echo", policy={"handshake_bytes": 4 * KIB}, options=["option=19:1000"], memory=MIB, descriptors=200)
def half_ready(attack):
    begun = zmtp.greeting() + struct.pack(">BQ", zmtp.COMMAND | zmtp.LONG, 64 * KIB) + b"\5READY" + b"a" * (64 * KIB - 100)
    for _ in range(200):
        stream = attack.connect()
        try:
            stream.sendall(begun)
        except ConnectionError:
            pass
        attack.ended(stream)


# The victim disconnects these subscribers within half a second. Until then their queues fill up to the high-water mark.
@case("subscribers that read nothing, limited", type="PUB", mode="send", options=["option=23:100", f"body={10 * KIB}"], policy={"unread_bytes_per_peer": 100 * KIB},
      memory=20 * (100 * 10 * KIB + 256 * KIB))
def slow_subscribers(attack):
    streams = [attack.connect(receive_buffer=4096) for _ in range(20)]
    for stream in streams:
        zmtp.shake_hands(stream, "SUB")
        stream.sendall(zmtp.subscribe(b""))
    if attack.limited:
        for stream in streams:
            attack.ended(stream)
