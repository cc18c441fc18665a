"""ZMTP from raw bytes: what a peer of each protocol version puts on a plain socket (RFC 13, 15, 23 and 37)."""

import socket
import struct

PAIR, PUB, SUB, REQ, REP, DEALER, ROUTER, PULL, PUSH = range(9)  # socket types of the ZMTP 2.0 greeting
TIMEOUT_S = 60

SIGNATURE = b"\xff" + bytes(7) + b"\x01\x7f"
MORE, LONG, COMMAND = 1, 2, 4


class Peer:
    """A byte stream with the frame forms of one version."""

    def __init__(self, stream):
        self.stream = stream
        stream.settimeout(TIMEOUT_S)

    @classmethod
    def connect(cls, endpoint):
        host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
        return cls(socket.create_connection((host, int(port)), TIMEOUT_S))

    def write(self, data):
        self.stream.sendall(data)

    def read(self, count):
        data = b""
        while len(data) < count:
            chunk = self.stream.recv(count - len(data))
            if not chunk:
                raise EOFError(f"closed after {data!r}, {count} bytes wanted")
            data += chunk
        return data

    def closed_by_peer(self):
        """Reads until the other end closes the connection; a reset counts, a time-out does not."""
        try:
            while self.stream.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self):
        self.stream.close()

    def reset(self):
        """Closes with a TCP reset instead of the usual end."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.close()

    # Frames of ZMTP 2.0 and later.

    def send(self, *parts):
        for left, part in zip(reversed(range(len(parts))), parts):
            self.write(frame(part, MORE if left else 0))

    def recv_frame(self):
        flags = self.read(1)[0]
        length = struct.unpack(">Q", self.read(8))[0] if flags & LONG else self.read(1)[0]
        return flags, self.read(length)

    def recv(self):
        """The parts of the next message; commands are an error here."""
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
        self.write(frame(bytes([len(name)]) + name.encode() + data, COMMAND))


def frame(body, flags=0):
    if len(body) > 255:
        return struct.pack(">BQ", flags | LONG, len(body)) + body
    return struct.pack(">BB", flags, len(body)) + body


def metadata(*properties):
    data = b""
    for name, value in properties:
        data += bytes([len(name)]) + name.encode() + struct.pack(">I", len(value)) + value
    return data


class Zmtp3(Peer):
    """ZMTP 3.0 and 3.1 with the NULL mechanism."""

    def greeting(self, minor, mechanism=b"NULL"):
        return SIGNATURE + bytes([3, minor]) + mechanism.ljust(20, b"\0") + bytes(32)

    def handshake(self, socket_type, minor=1, *properties):
        self.write(self.greeting(minor))
        theirs = self.read(64)
        assert theirs[0] == 0xFF and theirs[9] == 0x7F and theirs[10] == 3, theirs
        assert theirs[12:32] == b"NULL".ljust(20, b"\0"), theirs
        self.send_command("READY", metadata(("Socket-Type", socket_type), *properties))
        name, self.ready = self.recv_command()
        assert name == "READY", name
        return self


class Zmtp2(Peer):
    """ZMTP 2.0: the socket type is one byte of the greeting, an identity frame follows."""

    def handshake(self, socket_type, identity=b""):
        self.write(SIGNATURE)
        theirs = self.read(10)
        assert theirs[0] == 0xFF and theirs[9] & 1 == 1, theirs
        self.write(bytes([1, socket_type]) + frame(identity))
        revision = self.read(1)[0]
        assert revision >= 1, revision
        # The other end answers in version 2.0: socket type and identity, not the rest of a 3.x greeting.
        self.socket_type = self.read(1)[0]
        self.identity = self.recv_frame()[1]
        return self


class Zmtp1(Peer):
    """ZMTP 1.0: no greeting, an identity frame first; the length counts the flags byte."""

    def handshake(self, identity=b""):
        self.write(self.frame(identity))
        _, self.identity = self.recv_frame()
        return self

    @staticmethod
    def frame(body, flags=0):
        if len(body) + 1 > 254:
            return b"\xff" + struct.pack(">QB", len(body) + 1, flags) + body
        return struct.pack(">BB", len(body) + 1, flags) + body

    def send(self, *parts):
        for left, part in zip(reversed(range(len(parts))), parts):
            self.write(self.frame(part, MORE if left else 0))

    def recv_frame(self):
        length = self.read(1)[0]
        if length == 0xFF:
            length = struct.unpack(">Q", self.read(8))[0]
        flags = self.read(1)[0]
        return flags, self.read(length - 1)


class Listener:
    """A plain TCP listener that hands each connection to a version's class."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(TIMEOUT_S)
        self.endpoint = f"tcp://127.0.0.1:{self.socket.getsockname()[1]}"

    def accept(self, version):
        return version(self.socket.accept()[0])
