"""Strangers that attack TLS before ZMTP begins.

Each attack runs against every transport over TLS. Its peers never authenticate, so they have the limits of strangers.
"""

import struct
import time

import tls
import zmtp
from harness import BUFFERED, MIB, STALL_S, case

KIB = 1 << 10
MANY = 1000
ROOM = f"option=19:{MANY}"
# Transports, and the endpoints that the victim binds.
SCHEMES = {"wss": "wss://127.0.0.1:*/zmq", "tls+tcp": "tls+tcp://127.0.0.1:*"}
CREDENTIALS = [f"text=103:{tls.KEY}", f"text=104:{tls.CERTIFICATE}"]
# Memory that TLS keeps for a stranger, and for a stranger with an incomplete first message.
BEGUN, LONGEST = 16 * KIB, 80 * KIB
JUNK = bytes(MIB)


def over_tls(name, schemes=tuple(SCHEMES), **settings):
    """Registers an attack for each transport in `schemes`."""

    def register(attack):
        for scheme in schemes:
            bind = SCHEMES[scheme]
            options = CREDENTIALS + settings.get("options", [])
            also = {**settings, "type": "PULL", "mode": "receive", "bind": bind, "options": options, "needs": tls.there}
            case(f"{name}, {scheme}", **also)(attack)
        return attack

    return register


@over_tls("TLS begun, an octet at a time", options=[ROOM], memory=MANY * BEGUN, descriptors=MANY)
def slow(attack):
    hello = tls.client_hello()
    streams = [attack.connect() for _ in range(MANY)]
    for number in attack.times(16):
        for stream in streams:
            # The last octet is never sent.
            stream.send(hello[number % (len(hello) - 1) :][:1])
        if not attack.limited:
            # The pace of the benchmark, within the time limit of a handshake.
            time.sleep(0.1)


@over_tls("a ClientHello, and nothing behind it", options=[ROOM], memory=MANY * BEGUN, descriptors=MANY)
def half(attack):
    """By then the server has computed its key share and a signature."""
    for _ in range(MANY):
        stream = attack.connect()
        stream.sendall(tls.client_hello())
        # Reads the header of the server's first record.
        zmtp.read_exactly(stream, 5)


@over_tls("ClientHellos that come and go", memory=0, descriptors=100)
def come_and_go(attack):
    hello = tls.client_hello()
    for _ in attack.times(1000):
        stream = attack.connect()
        stream.sendall(hello)
        zmtp.read_exactly(stream, 5)
        attack.drop(stream)


@over_tls("64 KiB of a ClientHello begun", options=[ROOM], memory=200 * LONGEST, descriptors=200)
def great_hello(attack):
    # A handshake message of the longest accepted length without its end, in records of the longest length.
    body = b"\1" + (60 * KIB).to_bytes(3, "big") + tls.client_hello()[9:43] + bytes(50 * KIB)
    begun = b"".join(b"\x16\3\1" + struct.pack(">H", len(body[at:][: 16 * KIB])) + body[at:][: 16 * KIB] for at in range(0, len(body), 16 * KIB))
    for _ in range(200):
        try:
            attack.connect().sendall(begun)
        except ConnectionError:
            pass


@over_tls("TLS, and nothing in it", options=[ROOM], memory=200 * BEGUN, descriptors=200)
def silent(attack):
    for _ in range(200):
        tls.Stream(attack.connect())


def update_keys(attack, answer):
    for _ in attack.rounds():
        secured = tls.Stream(attack.connect(receive_buffer=4096), patience_s=STALL_S)
        for _ in attack.times(50_000):
            if not secured.update_key(answer):
                break
            # Bytes of one record with its header, its type and its tag.
            attack.count(swallowed=27)


@over_tls("KeyUpdates whose answers are not read", memory=MIB)
def answered_updates(attack):
    update_keys(attack, answer=True)


@over_tls("KeyUpdates without end", memory=MIB)
def updates(attack):
    update_keys(attack, answer=False)


# tls+tcp supports only TLS 1.3.
@over_tls("a new handshake within TLS 1.2, again and again", schemes=["wss"], memory=MIB)
def renegotiation(attack):
    for _ in attack.times(100):
        stream = attack.connect()
        secured = tls.Stream(stream, tls.TLS1_2, patience_s=STALL_S)
        for _ in range(100):
            if not secured.negotiate_again():
                break
            attack.count(swallowed=1)
        attack.drop(stream)


@over_tls("records of one octet that never end a request", memory=MIB, swallowed=BUFFERED)
def small_records(attack):
    for _ in attack.rounds():
        secured = tls.Stream(attack.connect(), patience_s=STALL_S)
        for octet in attack.times(200_000):
            if not secured.write(b"G" if octet == 0 else b"x"):
                break
            attack.count(swallowed=23)


@over_tls("junk in place of TLS", swallowed=4 * BUFFERED)
def junk(attack):
    for _ in attack.rounds():
        streams = [attack.connect() for _ in range(4)]
        attack.flood(streams, JUNK)
