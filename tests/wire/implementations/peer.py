"""A peer is a process that carries out one command a line and answers each with `ok ...` or `error WHY`:

    socket ID KIND    set ID OPTION VALUE    bind ID ENDPOINT    connect ID ENDPOINT    close ID
    send ID PART...   recv ID                readable ID MILLISECONDS

Parts and byte values are hexadecimal, and `-` stands for an empty one. `bind` answers with the endpoint, `recv` with the parts. A PLAIN
server gets PLAIN_SERVER, and the accepted name and password in the options of a client.
"""

import subprocess

import zmq

BYTES = (
    zmq.ROUTING_ID, zmq.SUBSCRIBE, zmq.UNSUBSCRIBE, zmq.PLAIN_USERNAME, zmq.PLAIN_PASSWORD,
    zmq.CURVE_PUBLICKEY, zmq.CURVE_SECRETKEY, zmq.CURVE_SERVERKEY,
)  # fmt: skip


class Refused(Exception):
    """The peer answered with an error."""


class Peer:
    """A side with the methods of sides.py. It forwards them to a process over two pipes."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1 << 20)
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        self.process.stdin.close()
        code = self.process.wait()
        assert kind or code == 0, f"the peer ended with {code}"

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"the peer ended with {self.process.wait()}")
        status, *answer = line.split()
        if status != "ok":
            raise Refused(" ".join(answer).replace("EHOSTUNREACH", "Host unreachable"))
        return answer

    def socket(self, kind):
        self.count += 1
        return PeerSocket(self, f"s{self.count}", kind)


class PeerSocket:
    def __init__(self, peer, name, kind):
        self.peer, self.name = peer, name
        peer.ask("socket", name, zmq.SocketType(kind).name)

    def bind(self, endpoint):
        return self.peer.ask("bind", self.name, endpoint)[0]

    def connect(self, endpoint):
        self.peer.ask("connect", self.name, endpoint)

    def set(self, option, value):
        value = (value.hex() or "-") if option in BYTES else int(value)
        self.peer.ask("set", self.name, zmq.SocketOption(option).name, value)

    def send(self, *parts):
        self.peer.ask("send", self.name, *(part.hex() or "-" for part in parts))

    def recv(self):
        return [b"" if part == "-" else bytes.fromhex(part) for part in self.peer.ask("recv", self.name)]

    def readable(self, timeout_ms):
        return self.peer.ask("readable", self.name, timeout_ms) != ["0"]

    def close(self):
        self.peer.ask("close", self.name)
