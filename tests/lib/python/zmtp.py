"""ZMTP and ZWS as raw bytes on a plain stream, for peers of each protocol version (RFC 13, 15, 23, 37, 45 and 6455)."""

import base64
import os
import socket
import struct

PAIR, PUB, SUB, REQ, REP, DEALER, ROUTER, PULL, PUSH = range(9)  # socket types of the ZMTP 2.0 greeting
TIMEOUT_S = 60

SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
MORE, LONG, COMMAND = 1, 2, 4


# Frames and commands of ZMTP 2.0 and later.


def frame(body, flags=0):
    if len(body) > 255:
        return struct.pack(">BQ", flags | LONG, len(body)) + body
    return struct.pack(">BB", flags, len(body)) + body


def command(name, data=b""):
    return frame(bytes([len(name)]) + name.encode() + data, COMMAND)


def metadata(*properties):
    data = b""
    for name, value in properties:
        data += bytes([len(name)]) + name.encode() + struct.pack(">I", len(value)) + value
    return data


def greeting(mechanism=b"NULL", minor=1):
    return SIGNATURE + bytes([3, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def ready(socket_type, *properties):
    return command("READY", metadata(("Socket-Type", socket_type.encode()), *properties))


def ping(ttl=0, context=b""):
    return command("PING", struct.pack(">H", ttl) + context)


def subscribe(topic):
    return command("SUBSCRIBE", topic)


def hello_plain(user=b"bad", password=b"bad"):
    return command("HELLO", bytes([len(user)]) + user + bytes([len(password)]) + password)


def hello_curve():
    """Returns a well-formed HELLO that was made with a key other than the server's."""
    return command("HELLO", b"\1\0" + bytes(72) + os.urandom(32) + struct.pack(">Q", 1) + os.urandom(80))


# Streams.


def connect(endpoint, receive_buffer=None):
    """Returns a stream to a `tcp`, `ws` or `ipc` endpoint. With a small receive buffer, the peer's output blocks soon."""
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
    stream.settimeout(TIMEOUT_S)
    stream.connect(address)
    return stream


def reset_on_close(stream):
    """Makes `close` send a TCP reset, which frees the port at once."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_exactly(stream, count):
    data = bytearray()
    while len(data) < count:
        chunk = stream.recv(count - len(data))
        if not chunk:
            raise EOFError(f"closed after {bytes(data)!r}, {count} bytes wanted")
        data += chunk
    return bytes(data)


def read_frame(stream):
    """Returns the flags and the body of the next frame."""
    flags = read_exactly(stream, 1)[0]
    length = struct.unpack(">Q", read_exactly(stream, 8))[0] if flags & LONG else read_exactly(stream, 1)[0]
    return flags, read_exactly(stream, length)


def shake_hands(stream, socket_type, *properties):
    """Performs the NULL handshake and returns after the peer's READY."""
    stream.sendall(greeting() + ready(socket_type, *properties))
    read_exactly(stream, 64)
    read_frame(stream)


# Peers of each version.


class Peer:
    """A byte stream with the frame forms of one version."""

    def __init__(self, stream):
        self.stream = stream
        stream.settimeout(TIMEOUT_S)

    @classmethod
    def connect(cls, endpoint):
        return cls(connect(endpoint))

    def write(self, data):
        self.stream.sendall(data)

    def read(self, count):
        return read_exactly(self.stream, count)

    def closed_by_peer(self):
        """Reads until the peer closes the connection. A reset counts as a close, a time-out raises an error."""
        try:
            while self.stream.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self):
        self.stream.close()

    def reset(self):
        """Closes with a TCP reset instead of a FIN."""
        reset_on_close(self.stream)
        self.stream.close()

    # Frames of ZMTP 2.0 and later.

    @staticmethod
    def frame(body, flags=0):
        return frame(body, flags)

    def send(self, *parts):
        for left, part in zip(reversed(range(len(parts))), parts):
            self.write(self.frame(part, MORE if left else 0))

    def recv_frame(self):
        return read_frame(self.stream)

    def recv(self):
        """Returns the parts of the next message. A command is an error here."""
        parts = []
        while True:
            flags, body = self.recv_frame()
            assert not flags & COMMAND, body
            parts.append(body)
            if not flags & MORE:
                return parts

    def recv_command(self):
        flags, body = self.recv_frame()
        assert flags & COMMAND and not flags & MORE, (flags, body)
        length = body[0]
        return body[1:1 + length].decode(), body[1 + length:]

    def send_command(self, name, data=b""):
        self.write(command(name, data))


class Zmtp3(Peer):
    """ZMTP 3.0 and 3.1 with the NULL mechanism."""

    def handshake(self, socket_type, minor=1, *properties):
        self.write(greeting(minor=minor))
        theirs = self.read(64)
        assert theirs[0] == 0xFF and theirs[9] == 0x7F and theirs[10] == 3, theirs
        assert theirs[12:32] == b"NULL".ljust(20, b"\0"), theirs
        self.write(ready(socket_type, *properties))
        name, self.ready = self.recv_command()
        assert name == "READY", name
        return self


class Zmtp2(Peer):
    """ZMTP 2.0: one byte of the greeting is the socket type, and an identity frame follows."""

    def handshake(self, socket_type, identity=b""):
        self.write(SIGNATURE)
        theirs = self.read(10)
        assert theirs[0] == 0xFF and theirs[9] & 1 == 1, theirs
        self.write(bytes([1, socket_type]) + frame(identity))
        revision = self.read(1)[0]
        assert revision >= 1, revision
        # The peer answers in version 2.0, with socket type and identity instead of the rest of a 3.x greeting.
        self.socket_type = self.read(1)[0]
        self.identity = self.recv_frame()[1]
        return self


class Zmtp1(Peer):
    """ZMTP 1.0: no greeting, but an identity frame first. The length of a frame includes the flags byte."""

    def handshake(self, identity=b""):
        self.write(self.frame(identity))
        _, self.identity = self.recv_frame()
        return self

    @staticmethod
    def frame(body, flags=0):
        if len(body) + 1 > 254:
            return b"\xff" + struct.pack(">QB", len(body) + 1, flags) + body
        return struct.pack(">BB", len(body) + 1, flags) + body

    def recv_frame(self):
        length = self.read(1)[0]
        if length == 0xFF:
            length = struct.unpack(">Q", self.read(8))[0]
        flags = self.read(1)[0]
        return flags, self.read(length - 1)


class Listener:
    """A plain TCP listener that wraps each connection in the class of a ZMTP version."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(TIMEOUT_S)
        self.endpoint = f"tcp://127.0.0.1:{self.socket.getsockname()[1]}"

    def accept(self, version):
        return version(self.socket.accept()[0])


# WebSocket. A client masks its frames.

BINARY, WS_CLOSE, WS_PING, WS_PONG = 2, 8, 9, 10


def ws_frame(opcode, body, fin=True, mask=bytes(4)):
    """Returns a client's frame. A nonzero `mask` costs time for each octet."""
    first = opcode | (0x80 if fin else 0)
    if len(body) < 126:
        head = struct.pack(">BB", first, 0x80 | len(body))
    elif len(body) < 65536:
        head = struct.pack(">BBH", first, 0x80 | 126, len(body))
    else:
        head = struct.pack(">BBQ", first, 0x80 | 127, len(body))
    return head + mask + (bytes(byte ^ mask[n % 4] for n, byte in enumerate(body)) if any(mask) else body)


def ws_command(body):
    """Returns a frame with a ZMTP command. `body` is the name, with its length before it, and the data."""
    return ws_frame(BINARY, b"\2" + body)


def ws_message(body):
    return ws_frame(BINARY, b"\0" + body)


def ws_ready(socket_type):
    return ws_command(b"\5READY" + metadata(("Socket-Type", socket_type.encode())))


def ws_request(protocol="ZWS2.0", path="/", **changes):
    """Returns a client's opening request. `changes` replaces or adds headers; an empty value omits a header."""
    headers = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": protocol,
        "Sec-WebSocket-Version": "13",
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return (f"GET {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items() if v) + "\r\n").encode()


def ws_read_head(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read_exactly(stream, 1)
    return head


def ws_open(stream, endpoint, mechanism="NULL"):
    stream.sendall(ws_request(f"ZWS2.0/{mechanism}", "/" + endpoint.split("//")[1].partition("/")[2]))
    head = ws_read_head(stream)
    assert head.startswith(b"HTTP/1.1 101"), head
