"""Raw peers: what an attacker says, as bytes. ZMTP's forms come from the interoperability tests."""

import base64
import fcntl
import mmap
import os
import pathlib
import socket
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "interop"))

import wire  # noqa: E402
from wire import COMMAND, LONG, MORE, frame, metadata  # noqa: E402, F401

MINUTE_S = 60


def greeting(mechanism=b"NULL", minor=1):
    return wire.Zmtp3.greeting(None, minor, mechanism)


def command(name, data=b""):
    return frame(bytes([len(name)]) + name.encode() + data, COMMAND)


def ready(socket_type, *properties):
    return command("READY", metadata(("Socket-Type", socket_type.encode()), *properties))


def ping(ttl=0, context=b""):
    return command("PING", struct.pack(">H", ttl) + context)


def subscribe(topic):
    return command("SUBSCRIBE", topic)


def hello_plain(user=b"bad", password=b"bad"):
    return command("HELLO", bytes([len(user)]) + user + bytes([len(password)]) + password)


def hello_curve():
    """A HELLO of the right form that was made with another key than the server's."""
    return command("HELLO", b"\1\0" + bytes(72) + os.urandom(32) + bytes(8) + os.urandom(80))


def connect(endpoint, receive_buffer=None):
    """A stream to a `tcp`, `ws` or `ipc` endpoint. A small receive buffer blocks output to it soon."""
    if endpoint.startswith("ipc://"):
        stream = socket.socket(socket.AF_UNIX)
        path = endpoint.removeprefix("ipc://")
        address = "\0" + path[1:] if path.startswith("@") else path
    else:
        stream = socket.socket()
        if receive_buffer:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        host, port = endpoint.split("//")[1].split("/")[0].rsplit(":", 1)
        address = host, int(port)
    stream.settimeout(MINUTE_S)
    stream.connect(address)
    return stream


def reset_on_close(stream):
    """Or the ports of many short connections would all wait for their time."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_exactly(stream, count):
    return wire.Peer.read(Reader(stream), count)


class Reader:
    def __init__(self, stream):
        self.stream = stream


def shake_hands(stream, socket_type, *properties):
    """As a peer without authentication; returns when the victim has said its part."""
    stream.sendall(greeting() + ready(socket_type, *properties))
    read_exactly(stream, 64)
    read_frame(stream)


def read_frame(stream):
    flags = read_exactly(stream, 1)[0]
    length = struct.unpack(">Q", read_exactly(stream, 8))[0] if flags & LONG else read_exactly(stream, 1)[0]
    return read_exactly(stream, length)


# WebSocket (RFC 6455, RFC 45): frames of a client are masked, here with zeros.

BINARY, WS_CLOSE, WS_PING = 2, 8, 9


def ws_frame(opcode, body, masked=True, fin=True):
    mask, first = 0x80 if masked else 0, opcode | (0x80 if fin else 0)
    if len(body) < 126:
        head = struct.pack(">BB", first, mask | len(body))
    elif len(body) < 65536:
        head = struct.pack(">BBH", first, mask | 126, len(body))
    else:
        head = struct.pack(">BBQ", first, mask | 127, len(body))
    return head + (bytes(4) if masked else b"") + body


def ws_command(body):
    """A ZMTP command: its name, with a length before it, and its data."""
    return ws_frame(BINARY, b"\2" + body)


def ws_message(body):
    return ws_frame(BINARY, b"\0" + body)


def ws_ready(socket_type):
    return ws_command(b"\5READY" + metadata(("Socket-Type", socket_type.encode())))


def ws_request(endpoint, mechanism=b"NULL"):
    path = "/" + endpoint.split("//")[1].partition("/")[2]
    key = base64.b64encode(os.urandom(16))
    return (
        b"GET %b HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %b\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ZWS2.0/%b\r\n\r\n" % (path.encode(), key, mechanism)
    )


def ws_open(stream, endpoint, mechanism=b"NULL"):
    stream.sendall(ws_request(endpoint, mechanism))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read_exactly(stream, 1)
    assert head.startswith(b"HTTP/1.1 101"), head


class Ring:
    """Shared memory as a Tautline offers it over `ipc`, for bytes from us to the victim."""

    HEADER, ACCEPTED, SWITCH_AT, SWITCHED, TAIL, HEAD = 4096, 8, 128, 256, 384, 512

    CAPACITY = 2 << 20

    def __init__(self):
        self.memory_fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.posix_fallocate(self.memory_fd, 0, self.HEADER + self.CAPACITY)
        self.memory = mmap.mmap(self.memory_fd, self.HEADER + self.CAPACITY)
        self.memory[0:8] = b"tautlin1"
        fcntl.fcntl(self.memory_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.question, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.question.setblocking(False)
        self.theirs.setblocking(False)

    def offer(self, stream, data):
        """Sends `data` with the offer."""
        socket.send_fds(stream, [data], [self.memory_fd, self.theirs.fileno()])

    def get(self, at):
        return struct.unpack_from("<Q", self.memory, at)[0]

    def put(self, at, value):
        struct.pack_into("<Q", self.memory, at, value)

    def switch(self, at):
        """What comes behind so many bytes of the stream is in the ring."""
        self.put(self.SWITCH_AT, at)
        struct.pack_into("<I", self.memory, self.SWITCHED, 1)
