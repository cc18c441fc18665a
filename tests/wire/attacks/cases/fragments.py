"""Messages in WebSocket fragments (RFC 6455, section 5.4). The victim reassembles a message before it delivers it."""

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
    """The connection ends at ZMQ_MAXMSGSIZE. On the wire each octet of the message has a frame of seven octets."""
    for _ in attack.rounds():
        stream = opened(attack, zmtp.ws_ready("PUSH") + zmtp.ws_frame(zmtp.BINARY, b"\0", fin=False))
        attack.flood(stream, zmtp.ws_frame(0, b"x", fin=False) * 10_000)


@case("fragments of no octets that never end, ws", type="PULL", mode="receive", bind=WS)
def empty(attack):
    """Empty fragments use no memory."""
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
    """During the handshake a message has the limit of a command, 64 KiB."""
    for _ in attack.rounds():
        stream = opened(attack, zmtp.ws_frame(zmtp.BINARY, b"\2\5READY", fin=False))
        attack.flood(stream, zmtp.ws_frame(0, b"x", fin=False) * 10_000)
