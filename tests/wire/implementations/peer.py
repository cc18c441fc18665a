"""Independent implementations of ZMTP as peers of ours, over tcp: peers.py LIBRARY NAME COMMAND [PART-OF-A-NAME ...]

The peer NAME is a process, COMMAND, that carries out one command a line and answers each with `ok ...` or `error WHY`:

    socket ID KIND    set ID OPTION VALUE    bind ID ENDPOINT    connect ID ENDPOINT    close ID
    send ID PART...   recv ID                readable ID MILLISECONDS

Parts and values of bytes are hexadecimal, `-` for none. `bind` answers with the endpoint, `recv` with the parts. A PLAIN server
is given the name and the password to let in by the options of a client, beside PLAIN_SERVER.
"""

import itertools
import pathlib
import shlex
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "interop"))

import cases  # noqa: E402
import patterns  # noqa: E402
import security  # noqa: E402
import zmq  # noqa: E402
from sides import Ours  # noqa: E402

NULL, PLAIN, CURVE = "NULL", "PLAIN", "CURVE"

# The mechanisms of each peer.
MECHANISMS = {
    "JeroMQ": (NULL, PLAIN, CURVE),
    "go-zeromq": (NULL, PLAIN),
    "omq-tokio": (NULL, PLAIN, CURVE),
    "zmq.rs": (NULL,),
}

# What a peer does not do with libzmq 4.3.5 in our place either: (its own type, the exchange), any where None.
LACKS = {
    "go-zeromq": {
        ("REP", "request_reply"), ("REP", "dealer_to_reply"), ("XSUB", "publish"),
        ("XPUB", "publish_verbatim"), ("XSUB", "publish_verbatim"), ("XPUB", "upstream_messages"),
    },
    "omq-tokio": {("XSUB", "upstream_messages")},
    "zmq.rs": {("PAIR", None)},
}  # fmt: skip

BYTES = (
    zmq.ROUTING_ID, zmq.SUBSCRIBE, zmq.UNSUBSCRIBE, zmq.PLAIN_USERNAME, zmq.PLAIN_PASSWORD,
    zmq.CURVE_PUBLICKEY, zmq.CURVE_SECRETKEY, zmq.CURVE_SERVERKEY,
)  # fmt: skip


class Refused(Exception):
    """The peer answered with an error."""


class Peer:
    """A side as in sides.py: the process at the other end of two pipes."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1 << 20
        )
        self.count = 0

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        status, *answer = self.process.stdout.readline().split()
        if status != "ok":
            raise Refused(" ".join(answer).replace("EHOSTUNREACH", "Host unreachable"))
        return answer

    def socket(self, kind):
        self.count += 1
        return PeerSocket(self, f"s{self.count}", kind)

    def term(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


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


def secure(mechanism, server, client, ours_serves):
    """Gives both ends what they need; the one that binds is the server. Keys as libzmq and all peers take them: 32 bytes."""
    if mechanism == PLAIN:
        server.set(zmq.PLAIN_SERVER, 1)
        if ours_serves:
            server.set(zmq.ZAP_DOMAIN, security.DOMAIN)
        for end in (client,) if ours_serves else (client, server):
            end.set(zmq.PLAIN_USERNAME, b"admin")
            end.set(zmq.PLAIN_PASSWORD, b"secret")
    elif mechanism == CURVE:
        server.set(zmq.CURVE_SERVER, 1)
        server.set(zmq.CURVE_PUBLICKEY, security.key(security.SERVER_PUBLIC))
        server.set(zmq.CURVE_SECRETKEY, security.key(security.SERVER_SECRET))
        client.set(zmq.CURVE_SERVERKEY, security.key(security.SERVER_PUBLIC))
        client.set(zmq.CURVE_PUBLICKEY, security.key(security.CLIENT_PUBLIC))
        client.set(zmq.CURVE_SECRETKEY, security.key(security.CLIENT_SECRET))


def case(command, mechanism, first, second, body, ours_first, ours_binds):
    def run_case(library):
        ours, theirs = Ours(library), Peer(command)
        handler = security.Handler(ours) if mechanism == PLAIN and ours_binds else None
        sides = (ours, theirs) if ours_first else (theirs, ours)
        a, b = sides[0].socket(first), sides[1].socket(second)
        for socket, kind, routing_id in ((a, first, b"first"), (b, second, b"second")):
            if kind in (zmq.ROUTER, zmq.DEALER):
                socket.set(zmq.ROUTING_ID, routing_id)
            if kind == zmq.ROUTER:
                socket.set(zmq.ROUTER_MANDATORY, 1)
            if kind in (zmq.PUB, zmq.XPUB, zmq.SUB, zmq.XSUB):  # publishers drop at the high-water mark
                socket.set(zmq.SNDHWM, 0)
                socket.set(zmq.RCVHWM, 0)
        binding, connecting = (a, b) if ours_first == ours_binds else (b, a)
        secure(mechanism, binding, connecting, ours_binds)
        connecting.connect(binding.bind("tcp://127.0.0.1:*"))
        body(a, b)
        a.close()
        b.close()
        if handler:
            assert handler.requests, "nobody was asked for a password"
            handler.stop()
        ours.term()
        theirs.term()

    return run_case


def cases_of(peer, command):
    """The cases of this peer, and those left out."""
    chosen, lacking = [], []
    for mechanism, (first, second, body), ours_first, ours_binds in itertools.product(
        MECHANISMS[peer], patterns.EXCHANGES, (True, False), (True, False)
    ):
        theirs = zmq.SocketType(second if ours_first else first).name
        mine = zmq.SocketType(first if ours_first else second).name
        way = f"{mine} (ours) to {theirs}" if ours_first else f"{theirs} to {mine} (ours)"
        name = f"{peer}: {mechanism}: {way}, {'ours' if ours_binds else 'theirs'} binds: {body.__name__}"
        if {(theirs, body.__name__), (theirs, None)} & LACKS.get(peer, set()):
            lacking.append(name)
        else:
            chosen.append((name, case(command, mechanism, first, second, body, ours_first, ours_binds)))
    return chosen, lacking


if __name__ == "__main__":
    library, peer, command, *parts = sys.argv[1:]
    chosen, lacking = cases_of(peer, command)
    for name in lacking:
        print(f"skipped {name}: the peer fails with libzmq 4.3.5 in our place, too")
    # Every message crosses two more pipes, to a process that has to start first.
    cases.LIMIT_S = 300
    # Two peers fail now and then, with libzmq 4.3.5 in our place, too, where the machine is busy: from a DEALER of JeroMQ nothing
    # comes in time, once in thirty; a SUB of zmq.rs that binds does not tell a subscription to the connection that it is taking
    # meanwhile (it reads its subscriptions before it adds the connection to those that are told).
    sys.exit(cases.run("peers", "peers.sh", chosen, library, parts, len(lacking), tries=3 if peer in ("JeroMQ", "zmq.rs") else 1))
