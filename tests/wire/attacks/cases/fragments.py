"""Messages in fragments, over WebSocket (RFC 6455, section 5.4). A message is put together before it is delivered."""

import zmtp
from harness import BUFFERED, MIB, case

WS = "ws://127.0.0.1:*/zmq"
MOST = "wide=22:1048576"
TEXT_OF_NOTHING = zmtp.ws_frame(0, b"", fin=False)


def opened(attack, end=b""):
    stream = attack.connect()
    zmtp.ws_open(stream, attack.endpoint)
    stream.sendall(end)
    return stream


@case("fragments of one octet that never end, ws", type="PULL", mode="receive", bind=WS, options=[MOST], memory=3 * MIB, swallowed=16 * MIB + BUFFERED)
def small(attack):
    """The connection ends at ZMQ_MAXMSGSIZE, for which each octet brings seven."""
    for _ in attack.rounds():
        stream = opened(attack, zmtp.ws_ready("PUSH") + zmtp.ws_frame(zmtp.BINARY, b"\0", fin=False))
        attack.flood(stream, zmtp.ws_frame(0, b"x", fin=False) * 10_000)


@case("fragments of no octets that never end, ws", type="PULL", mode="receive", bind=WS)
def empty(attack):
    """They are nothing, and leave nothing."""
    stream = opened(attack, zmtp.ws_ready("PUSH") + zmtp.ws_frame(zmtp.BINARY, b"\0", fin=False))
    attack.flood(stream, TEXT_OF_NOTHING * 10_000)


@case("a message in fragments that never end, ws", type="PULL", mode="receive", bind=WS, options=[MOST], memory=3 * MIB, swallowed=2 * MIB + BUFFERED)
def great(attack):
    for _ in attack.rounds():
        stream = opened(attack, zmtp.ws_ready("PUSH") + zmtp.ws_frame(zmtp.BINARY, b"\0", fin=False))
        attack.flood(stream, zmtp.ws_frame(0, bytes(1000), fin=False) * 1000)


@case("pings between fragments, ws", type="PULL", mode="receive", bind=WS, options=[MOST])
def pings(attack):
    stream = attack.connect(receive_buffer=4096)
    zmtp.ws_open(stream, attack.endpoint)
    stream.sendall(zmtp.ws_ready("PUSH") + zmtp.ws_frame(zmtp.BINARY, b"\0", fin=False))
    attack.flood(stream, (TEXT_OF_NOTHING + zmtp.ws_frame(zmtp.WS_PING, bytes(125))) * 1000)


@case("READY in fragments that never end, ws", type="PULL", mode="receive", bind=WS, swallowed=BUFFERED + MIB)
def ready(attack):
    """Before the handshake is complete a message has at most the 64 KiB of a command."""
    for _ in attack.rounds():
        stream = opened(attack, zmtp.ws_frame(zmtp.BINARY, b"\2\5READY", fin=False))
        attack.flood(stream, zmtp.ws_frame(0, b"x", fin=False) * 10_000)
