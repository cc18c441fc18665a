"""Strangers that know the public key of a CURVE server, which is no secret, and that have an untrusted key.

They cost the victim more than junk does, because it computes the handshake as for an honest client and asks its ZAP handler.
"""

import curve
import zmtp
from harness import BUFFERED, MIB, case

PEERS = 4
MANY = 1000
SETTINGS = {"mode": "echo", "security": "curve", "needs": curve.there}


@case("HELLOs of the right form that come and go, CURVE", memory=0, descriptors=100, **SETTINGS)
def hellos(attack):
    """Repeats one HELLO, which the attacker computes only once."""
    said = zmtp.greeting(b"CURVE") + curve.Client().hello()
    for _ in attack.times(1000):
        stream = attack.connect()
        stream.sendall(said)
        zmtp.read_exactly(stream, 64)
        zmtp.read_frame(stream)
        attack.drop(stream)


@case("a HELLO of the right form, and nothing behind it, CURVE", options=[f"option=19:{MANY}"], memory=MANY * 4096, descriptors=MANY, **SETTINGS)
def half(attack):
    said = zmtp.greeting(b"CURVE") + curve.Client().hello()
    for _ in range(MANY):
        stream = attack.connect()
        stream.sendall(said)
        zmtp.read_exactly(stream, 64)
        zmtp.read_frame(stream)


@case("a key that nobody trusts, and sealed messages behind it", swallowed=PEERS * BUFFERED, **SETTINGS)
def stranger(attack):
    """The peer completes the handshake, and the ZAP handler rejects its key."""
    for _ in attack.rounds():
        streams = []
        for _ in range(PEERS):
            stream, client = attack.connect(), curve.Client()
            client.shake_hands(stream, "DEALER")
            streams.append((stream, client))
        # Each client seals its own messages, because the nonces must arrive in the order of sealing.
        for stream, client in streams:
            attack.flood(stream, b"".join(client.message(bytes(1000)) for _ in range(1000)), volume=8 * MIB)


@case("INITIATEs with cookies of others, CURVE", memory=0, descriptors=100, **SETTINGS)
def cookies(attack):
    """Sends the INITIATE for one connection over another connection."""
    for _ in attack.times(200):
        first, second, client = attack.connect(), attack.connect(), curve.Client()
        for stream in (first, second):
            stream.sendall(zmtp.greeting(b"CURVE") + client.hello())
            zmtp.read_exactly(stream, 64)
        taken = client.initiate(zmtp.read_frame(first)[1], "DEALER")
        zmtp.read_frame(second)
        second.sendall(taken)
        attack.ended(second)
        attack.drop(second)
        attack.drop(first)
