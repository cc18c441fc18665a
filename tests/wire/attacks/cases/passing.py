"""Peers that connect and disconnect while the owner of the socket makes no calls."""

import socket

import zmtp
from harness import MIB, case

MANY = 4000
# A property that fills the READY command of a peer.
LONG = b"v" * 65000


def pass_by(attack, says):
    """MANY peers send these bytes, read the victim's answer and disconnect."""
    for _ in attack.times(MANY):
        stream = attack.connect()
        stream.sendall(says)
        stream.shutdown(socket.SHUT_WR)
        while stream.recv(4096):
            pass
        attack.drop(stream)


def register(name, kind, peer, says=b"", properties=(), memory=0):
    @case(name, type=kind, memory=memory, descriptors=64, then="look 1000" if kind == "ROUTER" else None)
    def passing(attack):
        pass_by(attack, zmtp.greeting() + zmtp.ready(peer, *properties) + says)


register("peers that come and go, ROUTER", "ROUTER", "DEALER")
register("peers that come and go with a long property, ROUTER", "ROUTER", "DEALER", properties=[("X-long", LONG)])
register("subscribers that come and go, PUB", "PUB", "SUB", zmtp.subscribe(b"topic") + zmtp.frame(b"m" * 200))
register("peers that send to a PUSH and go", "PUSH", "PULL", zmtp.frame(b"m" * 1000))
# The victim keeps the message of each peer, and drops its long property.
register(
    "peers that leave a message with a long property, ROUTER",
    "ROUTER",
    "DEALER",
    zmtp.frame(b"m"),
    [("X-long", LONG)],
    memory=MANY * 4096 + 2 * MIB,
)
