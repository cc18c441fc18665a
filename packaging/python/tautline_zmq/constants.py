"""Constants: socket types, flags, events and the numbers of the options."""

from __future__ import annotations

from enum import IntEnum, IntFlag

__all__ = [
    "CHANNEL",
    "CLIENT",
    "ContextOption",
    "DEALER",
    "DGRAM",
    "DISH",
    "DONTWAIT",
    "FrameProperty",
    "GATHER",
    "Mechanism",
    "MonitorEvent",
    "NOBLOCK",
    "Option",
    "PAIR",
    "PEER",
    "POLLERR",
    "POLLIN",
    "POLLOUT",
    "PUB",
    "PULL",
    "PUSH",
    "PeerState",
    "RADIO",
    "REP",
    "REQ",
    "ROUTER",
    "SCATTER",
    "SERVER",
    "SNDMORE",
    "STREAM",
    "SUB",
    "SocketType",
    "XPUB",
    "XSUB",
]


class SocketType(IntEnum):
    """Types of sockets. The members are also names of `tautline_zmq`: `tautline_zmq.PUSH`."""

    PAIR = 0
    PUB = 1
    SUB = 2
    REQ = 3
    REP = 4
    DEALER = 5
    ROUTER = 6
    PULL = 7
    PUSH = 8
    XPUB = 9
    XSUB = 10
    STREAM = 11
    SERVER = 12
    CLIENT = 13
    RADIO = 14
    DISH = 15
    GATHER = 16
    SCATTER = 17
    DGRAM = 18
    PEER = 19
    CHANNEL = 20


PAIR = SocketType.PAIR
PUB = SocketType.PUB
SUB = SocketType.SUB
REQ = SocketType.REQ
REP = SocketType.REP
DEALER = SocketType.DEALER
ROUTER = SocketType.ROUTER
PULL = SocketType.PULL
PUSH = SocketType.PUSH
XPUB = SocketType.XPUB
XSUB = SocketType.XSUB
STREAM = SocketType.STREAM
SERVER = SocketType.SERVER
CLIENT = SocketType.CLIENT
RADIO = SocketType.RADIO
DISH = SocketType.DISH
GATHER = SocketType.GATHER
SCATTER = SocketType.SCATTER
DGRAM = SocketType.DGRAM
PEER = SocketType.PEER
CHANNEL = SocketType.CHANNEL

DONTWAIT = 1
"""Flag of send and receive: raise `Again` instead of waiting."""
NOBLOCK = DONTWAIT
"""The same as DONTWAIT."""
SNDMORE = 2
"""Flag of send: more parts of the same message follow."""

POLLIN = 1
"""Event of `poll`: a message can be received."""
POLLOUT = 2
"""Event of `poll`: a message can be sent."""
POLLERR = 4
"""Event of `Poller.poll`: a descriptor has an error."""


class Mechanism(IntEnum):
    """Security mechanisms; see the option `mechanism`."""

    NULL = 0
    PLAIN = 1
    CURVE = 2
    GSSAPI = 3


class PeerState(IntEnum):
    """States of the connection to a peer; see `Socket.peers`."""

    CONNECTING = 0
    """Not connected yet, or lost and possibly reconnecting."""
    CONNECTED = 1
    """Messages flow."""
    GONE = 2
    """Gone for good. Its messages may still be received."""
    LINGERING = 3
    """The socket is closed and still sends queued messages."""


class MonitorEvent(IntFlag):
    """Events of connections; see `Socket.monitor`."""

    CONNECTED = 0x1
    CONNECT_DELAYED = 0x2
    CONNECT_RETRIED = 0x4
    LISTENING = 0x8
    BIND_FAILED = 0x10
    ACCEPTED = 0x20
    ACCEPT_FAILED = 0x40
    CLOSED = 0x80
    CLOSE_FAILED = 0x100
    DISCONNECTED = 0x200
    MONITOR_STOPPED = 0x400
    HANDSHAKE_FAILED_NO_DETAIL = 0x800
    HANDSHAKE_SUCCEEDED = 0x1000
    HANDSHAKE_FAILED_PROTOCOL = 0x2000
    HANDSHAKE_FAILED_AUTH = 0x4000
    TOPIC_REFUSED = 0x10000000
    """A peer has used a topic that the policy does not allow."""
    NAME = 0x20000000
    """The endpoints of a name have changed, or its resolver fails."""
    ALL = 0x3000FFFF


class FrameProperty(IntEnum):
    """Numbers of the properties of a message part, for `Frame.get`."""

    MORE = 1
    SRCFD = 2
    SHARED = 3
    TAUTLINE_IS_LOAN = 0x54410012
    """1 if the part was received without a copy, in the memory of the sender."""


class ContextOption(IntEnum):
    """Numbers of the context options, for `Context.get` and `Context.set`."""

    IO_THREADS = 1
    MAX_SOCKETS = 2
    SOCKET_LIMIT = 3
    THREAD_PRIORITY = 3
    THREAD_SCHED_POLICY = 4
    MAX_MSGSZ = 5
    MSG_T_SIZE = 6
    THREAD_AFFINITY_CPU_ADD = 7
    THREAD_AFFINITY_CPU_REMOVE = 8
    THREAD_NAME_PREFIX = 9
    ZERO_COPY_RECV = 10
    IPV6 = 42
    BLOCKY = 70
    TAUTLINE_VERSION = 0x54410002
    TAUTLINE_OBSERVE = 0x54410004
    TAUTLINE_POLICY = 0x54410008
    TAUTLINE_NAMES = 0x54410009


class Option(IntEnum):
    """Numbers of the socket options, for `Socket.get` and `Socket.set`. Most options are also typed properties."""

    AFFINITY = 4
    ROUTING_ID = 5
    SUBSCRIBE = 6
    UNSUBSCRIBE = 7
    RATE = 8
    RECOVERY_IVL = 9
    SNDBUF = 11
    RCVBUF = 12
    RCVMORE = 13
    FD = 14
    EVENTS = 15
    TYPE = 16
    LINGER = 17
    RECONNECT_IVL = 18
    BACKLOG = 19
    RECONNECT_IVL_MAX = 21
    MAXMSGSIZE = 22
    SNDHWM = 23
    RCVHWM = 24
    MULTICAST_HOPS = 25
    RCVTIMEO = 27
    SNDTIMEO = 28
    LAST_ENDPOINT = 32
    ROUTER_MANDATORY = 33
    TCP_KEEPALIVE = 34
    TCP_KEEPALIVE_CNT = 35
    TCP_KEEPALIVE_IDLE = 36
    TCP_KEEPALIVE_INTVL = 37
    IMMEDIATE = 39
    XPUB_VERBOSE = 40
    ROUTER_RAW = 41
    IPV6 = 42
    MECHANISM = 43
    PLAIN_SERVER = 44
    PLAIN_USERNAME = 45
    PLAIN_PASSWORD = 46
    CURVE_SERVER = 47
    CURVE_PUBLICKEY = 48
    CURVE_SECRETKEY = 49
    CURVE_SERVERKEY = 50
    PROBE_ROUTER = 51
    REQ_CORRELATE = 52
    REQ_RELAXED = 53
    CONFLATE = 54
    ZAP_DOMAIN = 55
    ROUTER_HANDOVER = 56
    TOS = 57
    CONNECT_ROUTING_ID = 61
    GSSAPI_SERVER = 62
    GSSAPI_PRINCIPAL = 63
    GSSAPI_SERVICE_PRINCIPAL = 64
    GSSAPI_PLAINTEXT = 65
    HANDSHAKE_IVL = 66
    SOCKS_PROXY = 68
    XPUB_NODROP = 69
    XPUB_MANUAL = 71
    XPUB_WELCOME_MSG = 72
    STREAM_NOTIFY = 73
    INVERT_MATCHING = 74
    HEARTBEAT_IVL = 75
    HEARTBEAT_TTL = 76
    HEARTBEAT_TIMEOUT = 77
    XPUB_VERBOSER = 78
    CONNECT_TIMEOUT = 79
    TCP_MAXRT = 80
    THREAD_SAFE = 81
    MULTICAST_MAXTPDU = 84
    USE_FD = 89
    GSSAPI_PRINCIPAL_NAMETYPE = 90
    GSSAPI_SERVICE_PRINCIPAL_NAMETYPE = 91
    BINDTODEVICE = 92
    ZAP_ENFORCE_DOMAIN = 93
    LOOPBACK_FASTPATH = 94
    METADATA = 95
    MULTICAST_LOOP = 96
    ROUTER_NOTIFY = 97
    XPUB_MANUAL_LAST_VALUE = 98
    SOCKS_USERNAME = 99
    SOCKS_PASSWORD = 100
    IN_BATCH_SIZE = 101
    OUT_BATCH_SIZE = 102
    WSS_KEY_PEM = 103
    WSS_CERT_PEM = 104
    WSS_TRUST_PEM = 105
    WSS_HOSTNAME = 106
    WSS_TRUST_SYSTEM = 107
    ONLY_FIRST_SUBSCRIBE = 108
    RECONNECT_STOP = 109
    HELLO_MSG = 110
    DISCONNECT_MSG = 111
    PRIORITY = 112
    BUSY_POLL = 113
    HICCUP_MSG = 114
    XSUB_VERBOSE_UNSUBSCRIBE = 115
    TOPICS_COUNT = 116
    TAUTLINE_STATISTICS = 0x54410001
    TAUTLINE_MAXMULTIPARTSIZE = 0x54410003
    TAUTLINE_PEERS = 0x54410005
    TAUTLINE_WAIT_PEERS = 0x54410006
    TAUTLINE_WAIT_SUBSCRIPTIONS = 0x54410007
    TAUTLINE_MAX_SUBSCRIPTIONS = 0x54410010
    TAUTLINE_LOANS = 0x54410011
