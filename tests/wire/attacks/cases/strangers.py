"""Peers with an incomplete handshake, and peers that the handshake refused.

Such a stranger may use memory for one command of 64 KiB, or of 600 bytes if it must authenticate first.
"""

import select
import struct
import time

import zmtp
from harness import BUFFERED, MIB, STALL_S, VOLUME, case
from ring import Ring

KIB = 1 << 10
# Below the library's threshold of a flood (1024), and within the system's capacity.
MANY = 1000
ROOM = f"option=19:{MANY}"
LITTLE = 4096
PEERS = 4
# Bytes that exceed the buffers of the system for all peers.
GOING_ON = 2 * PEERS * BUFFERED + VOLUME
JUNK = bytes(MIB)


@case("silent strangers", mode="echo", options=[ROOM], memory=MANY * 4 * KIB, descriptors=MANY)
def silent(attack):
    for _ in range(MANY):
        attack.connect()


@case("greetings, an octet at a time", mode="echo", security="curve", options=[ROOM], memory=MANY * 4 * KIB, descriptors=MANY)
def slow(attack):
    greeting = zmtp.greeting(b"CURVE")
    streams = [attack.connect() for _ in range(MANY)]
    for number in attack.times(16):
        for stream in streams:
            stream.send(greeting[number % 64:][:1])
        if not attack.limited:
            # The pace of the benchmark, which completes a greeting within the time limit of a handshake.
            time.sleep(0.1)


@case("half a greeting", mode="echo", options=[ROOM], memory=MANY * 4 * KIB, descriptors=MANY)
def half(attack):
    for _ in range(MANY):
        attack.connect().sendall(zmtp.greeting()[:32])


@case("connections that come and go", mode="echo", memory=0, descriptors=100)
def come_and_go(attack):
    for _ in attack.times(3000):
        attack.drop(attack.connect())


@case("64 KiB of READY begun", mode="echo", options=[ROOM], memory=200 * 68 * KIB, descriptors=200)
def half_ready(attack):
    begun = zmtp.greeting() + struct.pack(">BQ", zmtp.COMMAND | zmtp.LONG, 64 * KIB) + b"\5READY" + b"a" * (64 * KIB - 100)
    for _ in range(200):
        attack.connect().sendall(begun)


@case("HELLO begun, PLAIN", mode="echo", security="plain", options=[ROOM], memory=200 * 4 * KIB, descriptors=200)
def half_plain(attack):
    for _ in range(200):
        attack.connect().sendall(zmtp.greeting(b"PLAIN") + zmtp.hello_plain(b"u" * 255, b"p" * 255)[:-1])


@case("HELLO announced with 64 KiB, CURVE", mode="echo", security="curve", options=[ROOM], memory=200 * 4 * KIB, descriptors=200)
def great_hello(attack):
    begun = zmtp.greeting(b"CURVE") + struct.pack(">BQ", zmtp.COMMAND | zmtp.LONG, 64 * KIB) + b"\5HELLO" + b"a" * 60 * KIB
    for _ in range(200):
        try:
            attack.connect().sendall(begun)
        except ConnectionError:
            pass


@case("READY of thousands of properties", mode="echo", options=[ROOM], memory=100 * 68 * KIB, descriptors=100)
def many_properties(attack):
    # The shortest properties: names of up to three octets, without a value.
    names = [bytes([65 + n % 26, 97 + n // 26 % 26, 97 + n // 676]) for n in range(8000)]
    ready = zmtp.ready("DEALER", *((name.decode(), b"") for name in names))
    for _ in range(100):
        stream = attack.connect()
        stream.sendall(zmtp.greeting() + ready)
        zmtp.read_exactly(stream, 64)
        zmtp.read_frame(stream)


@case("HELLO of another key, and messages behind it", mode="echo", security="curve", memory=0)
def wrong_key(attack):
    junk = zmtp.frame(bytes(1024))
    for _ in attack.times(200):
        stream = attack.connect()
        try:
            stream.sendall(zmtp.greeting(b"CURVE") + zmtp.hello_curve() + junk)
        except ConnectionError:
            pass
        attack.ended(stream)
        attack.drop(stream)


def refused(attack, first):
    """The victim refuses the peers, and they continue to send."""
    for _ in attack.rounds():
        streams = [attack.connect() for _ in range(PEERS)]
        for stream in streams:
            stream.sendall(first)
            told(stream)
        attack.flood(streams, JUNK, GOING_ON)


def told(stream):
    """Waits for the victim's greeting and ERROR. Some libraries close the connection instead."""
    try:
        zmtp.read_exactly(stream, 64)
        zmtp.read_frame(stream)
    except (ConnectionError, EOFError):
        pass


@case("refused, and going on: PLAIN", mode="echo", security="plain", swallowed=PEERS * BUFFERED)
def refused_by_plain(attack):
    refused(attack, zmtp.greeting(b"PLAIN") + zmtp.hello_plain())


@case("refused, and going on: PLAIN, ipc", mode="echo", security="plain", bind="ipc://FOLDER/plain", swallowed=PEERS * BUFFERED)
def refused_over_ipc(attack):
    refused(attack, zmtp.greeting(b"PLAIN") + zmtp.hello_plain())


@case("refused, and going on: NULL with ZAP", mode="echo", security="zap", swallowed=PEERS * BUFFERED)
def refused_by_zap(attack):
    refused(attack, zmtp.greeting() + zmtp.ready("DEALER"))


@case("refused, and going on: another mechanism", mode="echo", security="curve", swallowed=PEERS * BUFFERED)
def refused_for_mechanism(attack):
    refused(attack, zmtp.greeting() + zmtp.ready("DEALER"))


@case("refused, and going on: PLAIN, ws", mode="echo", security="plain", bind="ws://127.0.0.1:*/zmq", swallowed=PEERS * BUFFERED)
def refused_over_ws(attack):
    for _ in attack.rounds():
        streams = [attack.connect() for _ in range(PEERS)]
        for stream in streams:
            zmtp.ws_open(stream, attack.endpoint, "PLAIN")
            stream.sendall(zmtp.ws_command(zmtp.hello_plain()[2:]))
        attack.flood(streams, zmtp.ws_message(JUNK), GOING_ON)


@case("closed, and going on: ws", mode="echo", bind="ws://127.0.0.1:*/zmq", swallowed=PEERS * BUFFERED)
def closed_over_ws(attack):
    for _ in attack.rounds():
        streams = [attack.connect() for _ in range(PEERS)]
        for stream in streams:
            zmtp.ws_open(stream, attack.endpoint)
            stream.sendall(zmtp.ws_frame(zmtp.WS_CLOSE, struct.pack(">H", 1000)))
        attack.flood(streams, zmtp.ws_message(JUNK), GOING_ON)


@case("shared memory of a refused peer", mode="echo", security="plain", bind="ipc://FOLDER/ring", swallowed=BUFFERED)
def refused_with_a_ring(attack):
    """After its refusal the peer only moves the end of its ring, and counts the bytes that the victim takes."""
    for _ in attack.rounds():
        ring = Ring()
        stream = attack.connect()
        try:
            ring.offer(stream, zmtp.greeting(b"PLAIN"))
        except PermissionError:
            # The system refuses a stranger's descriptors.
            return
        hello = zmtp.hello_plain()
        stream.sendall(hello)
        told(stream)
        ring.switch(64 + len(hello))
        try:
            for _ in attack.times(20_000):
                head = ring.get(ring.HEAD)
                ring.put(ring.TAIL, head + ring.CAPACITY)
                stream.send(b"b")
                attack.count(swallowed=ring.get(ring.HEAD) - head)
        except OSError:
            pass


@case("pings before the handshake is complete, ws", type="PULL", bind="ws://127.0.0.1:*/zmq", options=["option=24:10", "option=11:2048"], memory=MIB)
def ws_pings(attack):
    """Sends pings until the victim's output is blocked, and then a handshake and data."""
    stream = attack.connect(receive_buffer=LITTLE)
    zmtp.ws_open(stream, attack.endpoint)
    ping = zmtp.ws_frame(zmtp.WS_PING, bytes(125))
    stream.settimeout(STALL_S)
    try:
        # A read has about one ping, so the victim answers each of them.
        for _ in range(3000):
            stream.sendall(ping)
    except TimeoutError:
        pass
    attack.flood(stream, zmtp.ws_ready("PUSH") + zmtp.ws_message(bytes(60_000)) * 100)


@case("an endless request, ws", mode="echo", bind="ws://127.0.0.1:*/zmq", swallowed=BUFFERED)
def endless_request(attack):
    for _ in attack.rounds():
        stream = attack.connect()
        stream.sendall(b"GET /zmq HTTP/1.1\r\n")
        attack.flood(stream, (b"X-Name: " + b"v" * 1000 + b"\r\n") * 100)


@case(
    "strangers that wait for the ZAP handler", mode="echo", security="plain", options=[ROOM, "zap=silent"], answers=False,
    memory=200 * 8 * KIB, descriptors=200 + 4
)
def wait_for_zap(attack):
    for _ in range(200):
        stream = attack.connect()
        stream.sendall(zmtp.greeting(b"PLAIN") + zmtp.hello_plain(b"good", b"good"))
        zmtp.read_exactly(stream, 64)


@case("more strangers than descriptors", mode="echo", limits={"NOFILE": 40}, newcomer=False, memory=0)
def no_descriptors(attack):
    for stream in [attack.connect() for _ in range(100)]:
        # The victim sends a greeting to each accepted stream.
        if not select.select([stream], [], [], STALL_S)[0]:
            break
