"""The socket options as typed properties. Durations are in milliseconds, as in ZeroMQ."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Optional, Type, Union, overload

from tautline_zmq import errors
from tautline_zmq.constants import Mechanism
from tautline_zmq.constants import Option as O

if TYPE_CHECKING:
    from typing_extensions import Self

    from tautline_zmq import _native

    _Native = _native.NativeSocket
else:
    # The classes of the native module come last among the bases of a socket class.
    _Native = object
_NO_KEY = bytes(32)


class _Row:
    """A property for an option. Reading it on the class returns the property itself."""

    def __init__(self, number: int, doc: str, access: str = "rw") -> None:
        self.number = int(number)
        self.__doc__ = doc
        self.readable = "r" in access
        self.writable = "w" in access
        self.name = ""

    def __set_name__(self, owner: Type[Any], name: str) -> None:
        self.name = name

    def check_read(self) -> None:
        if not self.readable:
            raise AttributeError(f"the option {self.name} can only be set")

    def write(self, socket: _Native, value: Union[int, bytes]) -> None:
        if not self.writable:
            raise AttributeError(f"the option {self.name} can only be read")
        try:
            if isinstance(value, int):
                socket._set_int(self.number, value)
            else:
                socket._set_bytes(self.number, value)
        except errors.Error as error:
            place = f"set {self.name} on {errors.describe(socket)}"
            raise errors.made(error.errno or 0, place, socket) from None
        except OverflowError:
            raise OverflowError(f"{self.name}: {value!r} does not fit into 32 bits") from None

    def check(self, value: Any, expected: str, *types: Type[Any]) -> None:
        """Raises TypeError if a value has the wrong type."""
        if not self.writable:
            raise AttributeError(f"the option {self.name} can only be read")
        if not isinstance(value, types):
            raise TypeError(f"{self.name} is {expected}, not {type(value).__name__}")

    def read_int(self, socket: _Native) -> int:
        self.check_read()
        try:
            return socket._get_int(self.number)
        except errors.Error as error:
            raise self.unread(error, socket) from None

    def read_bytes(self, socket: _Native, room: int = 1024) -> bytes:
        self.check_read()
        try:
            return socket._get_bytes(self.number, room)
        except errors.Error as error:
            raise self.unread(error, socket) from None

    def unread(self, error: errors.Error, socket: _Native) -> errors.Error:
        """Returns the exception for an option that cannot be read."""
        return errors.made(error.errno or 0, f"get {self.name} on {errors.describe(socket)}", socket)


class _Int(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> int: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        return self.read_int(socket)

    def __set__(self, socket: _Native, value: int) -> None:
        self.check(value, "an int, in milliseconds" if str(self.__doc__).startswith("Milliseconds") else "an int", int)
        self.write(socket, value)


class _Linger(_Int):
    """The option `linger`, of which the socket keeps a copy."""

    def __set__(self, socket: Any, value: int) -> None:
        super().__set__(socket, value)
        socket._linger = value


class _Bool(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> bool: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        return self.read_int(socket) != 0

    def __set__(self, socket: _Native, value: bool) -> None:
        self.check(value, "a bool", int)
        if value not in (0, 1):
            raise ValueError(f"{self.name} is a bool, not {value!r}")
        self.write(socket, int(value))


class _Int64(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> int: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        return struct.unpack("=q", self.read_bytes(socket, 8))[0]

    def __set__(self, socket: _Native, value: int) -> None:
        self.check(value, "an int", int)
        try:
            packed = struct.pack("=q", value)
        except struct.error:
            raise OverflowError(f"{self.name}: {value!r} does not fit into 64 bits") from None
        self.write(socket, packed)


class _Bytes(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> bytes: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        return self.read_bytes(socket)

    def __set__(self, socket: _Native, value: Union[bytes, str]) -> None:
        self.check(value, "bytes or a str", bytes, str)
        self.write(socket, value.encode() if isinstance(value, str) else value)


class _Text(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> str: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        return self.read_bytes(socket).rstrip(b"\0").decode(errors="surrogateescape")

    def __set__(self, socket: _Native, value: str) -> None:
        self.check(value, "a str", str)
        self.write(socket, value.encode(errors="surrogateescape"))


class _Key(_Row):
    @overload
    def __get__(self, socket: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, socket: _Native, owner: Any) -> Optional[bytes]: ...
    def __get__(self, socket: Optional[_Native], owner: Any) -> Any:
        if socket is None:
            return self
        if self.read_bytes(socket, 32) == _NO_KEY:
            return None
        return self.read_bytes(socket, 41)[:40]

    def __set__(self, socket: _Native, value: Union[bytes, str]) -> None:
        self.check(value, "a key of bytes or a str", bytes, str)
        key = value.encode() if isinstance(value, str) else value
        try:
            self.write(socket, key)
        except errors.InvalidArgument as error:
            if len(key) in (32, 40):
                raise
            reason = f"{error}: a key has 40 characters of Z85, or 32 bytes, not {len(key)}"
            raise errors.InvalidArgument(error.errno, reason) from None


class Options(_Native):
    """The options of every socket, as properties. An unknown name raises AttributeError.

    An option that the socket type does not have raises InvalidArgument. Set most options before `bind` and `connect`.
    """

    __slots__ = ()

    # Queues and messages.
    sndhwm = _Int(O.SNDHWM, "High-water mark: messages that a peer's queue of outgoing messages holds. 0 is unlimited. Default 1000.")
    rcvhwm = _Int(O.RCVHWM, "High-water mark: messages that a peer's queue of incoming messages holds. 0 is unlimited. Default 1000.")
    sndtimeo = _Int(O.SNDTIMEO, "Milliseconds after which a send raises TimedOut. -1, the default, waits without limit; 0 never waits.")
    rcvtimeo = _Int(O.RCVTIMEO, "Milliseconds after which a receive raises TimedOut. -1, the default, waits without limit; 0 never waits.")
    linger = _Linger(O.LINGER, "Milliseconds that a closed socket keeps sending its queued messages. -1, the default, is unlimited.")
    maxmsgsize = _Int64(O.MAXMSGSIZE, "Maximum bytes of a received part; a peer that sends more is disconnected. -1, the default, is unlimited.")
    max_multipart_size = _Int64(O.TAUTLINE_MAXMULTIPARTSIZE, "Maximum bytes of all parts of a received message. -1, the default: 1024 times maxmsgsize.")
    max_subscriptions = _Int64(O.TAUTLINE_MAX_SUBSCRIPTIONS, "Maximum bytes for the subscriptions of one peer (PUB, XPUB, RADIO). Default 512 MiB.")
    loans = _Bool(O.TAUTLINE_LOANS, "True, the default: large bodies from a process of this machine may be received without a copy.")
    conflate = _Bool(O.CONFLATE, "True: the queue keeps only the last message. For messages of one part.")
    immediate = _Bool(O.IMMEDIATE, "True: messages are queued only for connected peers.")
    rcvmore = _Bool(O.RCVMORE, "True if the part that was received last has a successor in the same message.", "r")
    affinity = _Int64(O.AFFINITY, "Bit mask of the I/O threads that serve new connections. 0, the default: all.")
    priority = _Int(O.PRIORITY, "Priority of the queue pairs of the next connections, from 0.")

    # Identity.
    routing_id = _Bytes(O.ROUTING_ID, "Name of this socket for a ROUTER, 1 to 255 bytes. Set it before connect.")
    connect_routing_id = _Bytes(O.CONNECT_ROUTING_ID, "Name of the peer of the next connect (ROUTER, STREAM).", "w")
    probe_router = _Bool(O.PROBE_ROUTER, "True: sends an empty message to a new ROUTER peer.", "w")
    router_mandatory = _Bool(O.ROUTER_MANDATORY, "True: a send to an unknown peer raises HostUnreachable (ROUTER).", "w")
    router_handover = _Bool(O.ROUTER_HANDOVER, "True: a new peer with a routing id in use replaces the old one (ROUTER).", "w")
    router_raw = _Bool(O.ROUTER_RAW, "True: exchanges raw bytes with TCP peers (ROUTER).", "w")
    router_notify = _Int(O.ROUTER_NOTIFY, "1: an empty message for each connect, 2: for each disconnect, 3: for both (ROUTER).")
    stream_notify = _Bool(O.STREAM_NOTIFY, "True, the default: an empty message for each connect and disconnect (STREAM).", "w")
    req_correlate = _Bool(O.REQ_CORRELATE, "True: a REQ ignores replies that do not belong to its last request.", "w")
    req_relaxed = _Bool(O.REQ_RELAXED, "True: a REQ may send again without waiting for the reply.", "w")

    # Publish and subscribe.
    xpub_verbose = _Bool(O.XPUB_VERBOSE, "True: an XPUB receives every subscription, also repeated ones.", "w")
    xpub_verboser = _Bool(O.XPUB_VERBOSER, "True: an XPUB receives every subscription and unsubscription.", "w")
    xpub_nodrop = _Bool(O.XPUB_NODROP, "True: a send waits for a full subscriber instead of dropping the message.", "w")
    xpub_manual = _Bool(O.XPUB_MANUAL, "True: an XPUB program confirms subscriptions itself with `subscribe`.", "w")
    xpub_welcome_msg = _Bytes(O.XPUB_WELCOME_MSG, "Message that every new subscriber receives first.", "w")
    invert_matching = _Bool(O.INVERT_MATCHING, "True: messages pass that match no subscription. Set it on both ends.")
    topics_count = _Int(O.TOPICS_COUNT, "Number of different subscriptions (PUB, XPUB, SUB, XSUB).", "r")

    # Connections.
    last_endpoint = _Text(O.LAST_ENDPOINT, "The last endpoint that was bound or connected, with the port that the system chose.", "r")
    backlog = _Int(O.BACKLOG, "Maximum number of pending connections of a bound endpoint. Default 100.")
    reconnect_ivl = _Int(O.RECONNECT_IVL, "Milliseconds before a reconnect. -1 never reconnects. Default 100.")
    reconnect_ivl_max = _Int(O.RECONNECT_IVL_MAX, "Milliseconds up to which the reconnect interval doubles. 0, the default: it does not.")
    reconnect_stop = _Int(O.RECONNECT_STOP, "Ends reconnects after: 1 a refused connect, 2 a failed handshake, 4 a disconnect (a sum).")
    connect_timeout = _Int(O.CONNECT_TIMEOUT, "Milliseconds for a connect attempt. 0, the default: the system's limit.")
    handshake_ivl = _Int(O.HANDSHAKE_IVL, "Milliseconds for the handshake of a connection. 0 is unlimited. Default 30000.")
    heartbeat_ivl = _Int(O.HEARTBEAT_IVL, "Milliseconds between heartbeats. 0, the default: none.")
    heartbeat_timeout = _Int(O.HEARTBEAT_TIMEOUT, "Milliseconds without data until a connection is closed. -1, the default: heartbeat_ivl.")
    heartbeat_ttl = _Int(O.HEARTBEAT_TTL, "Milliseconds of silence after which the peer closes the connection. Rounded down to 100.")
    ipv6 = _Bool(O.IPV6, "True: endpoints may have IPv6 addresses.")
    sndbuf = _Int(O.SNDBUF, "Bytes of the system's send buffer of a connection. -1, the default: the system's choice.")
    rcvbuf = _Int(O.RCVBUF, "Bytes of the system's receive buffer of a connection. -1, the default: the system's choice.")
    in_batch_size = _Int(O.IN_BATCH_SIZE, "Maximum bytes of one read from a connection, up to 65536. Adaptive by default.")
    out_batch_size = _Int(O.OUT_BATCH_SIZE, "Maximum bytes of one write to a connection. Adaptive by default.")
    tcp_keepalive = _Int(O.TCP_KEEPALIVE, "1 turns on keep-alive of TCP, 0 turns it off. -1, the default: the system's choice.")
    tcp_keepalive_cnt = _Int(O.TCP_KEEPALIVE_CNT, "Number of keep-alive probes. -1, the default: the system's choice.")
    tcp_keepalive_idle = _Int(O.TCP_KEEPALIVE_IDLE, "Seconds before the first keep-alive probe. -1, the default: the system's choice.")
    tcp_keepalive_intvl = _Int(O.TCP_KEEPALIVE_INTVL, "Seconds between keep-alive probes. -1, the default: the system's choice.")
    tcp_maxrt = _Int(O.TCP_MAXRT, "Milliseconds for retransmissions of TCP. 0, the default: the system's choice.")
    tos = _Int(O.TOS, "Type of service of the IP packets. Default 0.")
    bindtodevice = _Text(O.BINDTODEVICE, "Name of the network interface of all connections.")
    socks_proxy = _Text(O.SOCKS_PROXY, "SOCKS 5 proxy for connects over tcp, as `host:port`.")
    socks_username = _Text(O.SOCKS_USERNAME, "User name for the proxy.")
    socks_password = _Text(O.SOCKS_PASSWORD, "Password for the proxy.")
    use_fd = _Int(O.USE_FD, "Listening descriptor for the next bind, which then owns it. -1, the default: none.")
    multicast_hops = _Int(O.MULTICAST_HOPS, "Time to live of multicast packets over udp. Default 1.")
    multicast_loop = _Bool(O.MULTICAST_LOOP, "True, the default: this machine receives its own multicast packets.")

    # Messages at the start and end of connections.
    hello_msg = _Bytes(O.HELLO_MSG, "Message that every new peer receives first.", "w")
    disconnect_msg = _Bytes(O.DISCONNECT_MSG, "Message that this socket receives when a peer is lost (ROUTER, SERVER, PEER).", "w")
    hiccup_msg = _Bytes(O.HICCUP_MSG, "Message that this socket receives when a connection is lost (DEALER, CLIENT, PEER).", "w")

    # Security.
    plain_server = _Bool(O.PLAIN_SERVER, "True: this end is the server of PLAIN and checks user names.")
    plain_username = _Text(O.PLAIN_USERNAME, "User name of a PLAIN client.")
    plain_password = _Text(O.PLAIN_PASSWORD, "Password of a PLAIN client.")
    curve_server = _Bool(O.CURVE_SERVER, "True: this end is the server of CURVE.")
    curve_publickey = _Key(O.CURVE_PUBLICKEY, "Public key: 40 characters of Z85, or 32 bytes. `None` if it is not set.")
    curve_secretkey = _Key(O.CURVE_SECRETKEY, "Secret key: 40 characters of Z85, or 32 bytes. `None` if it is not set.")
    curve_serverkey = _Key(O.CURVE_SERVERKEY, "The server's public key, for a client: 40 characters of Z85, or 32 bytes.")
    zap_domain = _Text(O.ZAP_DOMAIN, "Domain that an authentication handler sees.")
    zap_enforce_domain = _Bool(O.ZAP_ENFORCE_DOMAIN, "True: authentication without a domain is refused.")
    tls_key = _Text(O.WSS_KEY_PEM, "Private key for wss and tls+tcp, as PEM text.", "w")
    tls_cert = _Text(O.WSS_CERT_PEM, "Certificate chain for wss and tls+tcp, as PEM text.", "w")
    tls_trust = _Text(O.WSS_TRUST_PEM, "Trusted authorities for wss and tls+tcp, as PEM text.", "w")
    tls_hostname = _Text(O.WSS_HOSTNAME, "Name that the server's certificate must prove.", "w")
    tls_trust_system = _Bool(O.WSS_TRUST_SYSTEM, "True: trusts the authorities of the system.", "w")

    @property
    def hwm(self) -> int:
        """Sets `sndhwm` and `rcvhwm`. Reads `sndhwm`."""
        return self.sndhwm

    @hwm.setter
    def hwm(self, value: int) -> None:
        self.sndhwm = value
        self.rcvhwm = value

    @property
    def mechanism(self) -> Mechanism:
        """The security mechanism, which follows from the other options."""
        return Mechanism(self._get_int(O.MECHANISM))

    @property
    def events(self) -> int:
        """POLLIN, POLLOUT, both or 0: the operations that are possible now."""
        return self._get_int(O.EVENTS)

    @property
    def fd(self) -> int:
        """Descriptor that becomes readable when `events` may have changed, for foreign event loops (edge-triggered).

        Raises InvalidArgument for the socket types that several threads may use.
        """
        return self._get_int(O.FD)

