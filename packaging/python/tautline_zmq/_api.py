"""All public names of the native API; see `tautline_zmq`."""

try:
    from tautline_zmq import _native as _native
except ImportError as error:
    import sys

    raise ImportError(
        f"tautline_zmq has no native module for Python {sys.version_info[0]}.{sys.version_info[1]} here ({error}). "
        "Only its library for pyzmq can be used."
    ) from None

from tautline_zmq._frame import Frame as Frame, loan as loan
from tautline_zmq._info import features as features, library_version as library_version
from tautline_zmq.constants import (
    CHANNEL as CHANNEL,
    CLIENT as CLIENT,
    ContextOption as ContextOption,
    DEALER as DEALER,
    DGRAM as DGRAM,
    DISH as DISH,
    DONTWAIT as DONTWAIT,
    FrameProperty as FrameProperty,
    GATHER as GATHER,
    Mechanism as Mechanism,
    MonitorEvent as MonitorEvent,
    NOBLOCK as NOBLOCK,
    Option as Option,
    PAIR as PAIR,
    PEER as PEER,
    POLLERR as POLLERR,
    POLLIN as POLLIN,
    POLLOUT as POLLOUT,
    PUB as PUB,
    PULL as PULL,
    PUSH as PUSH,
    PeerState as PeerState,
    RADIO as RADIO,
    REP as REP,
    REQ as REQ,
    ROUTER as ROUTER,
    SCATTER as SCATTER,
    SERVER as SERVER,
    SNDMORE as SNDMORE,
    STREAM as STREAM,
    SUB as SUB,
    SocketType as SocketType,
    XPUB as XPUB,
    XSUB as XSUB,
)
from tautline_zmq.errors import (
    AccessRefused as AccessRefused,
    AddressInUse as AddressInUse,
    AddressNotAvailable as AddressNotAvailable,
    Again as Again,
    ContextTerminated as ContextTerminated,
    EFSM as EFSM,
    EMTHREAD as EMTHREAD,
    ENOCOMPATPROTO as ENOCOMPATPROTO,
    ETERM as ETERM,
    Error as Error,
    HostUnreachable as HostUnreachable,
    InvalidArgument as InvalidArgument,
    InvalidState as InvalidState,
    NotSupported as NotSupported,
    SocketClosed as SocketClosed,
    TimedOut as TimedOut,
)
from tautline_zmq.monitor import Event as Event, Monitor as Monitor
from tautline_zmq.peers import Peer as Peer, Statistics as Statistics
from tautline_zmq.security import (
    KeyPair as KeyPair,
    curve_client as curve_client,
    curve_keypair as curve_keypair,
    curve_public as curve_public,
    curve_server as curve_server,
    plain_client as plain_client,
)
from tautline_zmq.sockets import Context as Context, Poller as Poller, Socket as Socket, proxy as proxy
