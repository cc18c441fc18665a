"""Runs an unchanged pyzmq on Tautline: `import zmq` uses the libzmq of this package.

The package also has a native API, for programs without pyzmq: `Context`, `Socket` and so on, and the modules
`tautline_zmq.aio` and `tautline_zmq.aio_anyio` for event loops.

When Python starts, the file `tautline_zmq.pth` (from Python 3.15 on `tautline_zmq.start`) calls `install`. This registers a
finder, so a program without zmq imports only this small module. Right before zmq is imported, the finder loads the library
for the whole process, so the dynamic linker resolves pyzmq's calls to it. After `python -m tautline_zmq on`, pyzmq gets the native
backend of this package instead. After zmq.asyncio is imported, `_asyncio` replaces its slowest methods.

`python -m tautline_zmq` turns this off and on, shows the state, and measures the difference.
"""

import sys

# Type checkers read the names of the native API here. At run time, `__getattr__` loads them.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tautline_zmq._frame import Frame, loan
    from tautline_zmq._info import features, library_version
    from tautline_zmq.constants import (
        CHANNEL,
        CLIENT,
        ContextOption,
        DEALER,
        DGRAM,
        DISH,
        DONTWAIT,
        FrameProperty,
        GATHER,
        Mechanism,
        MonitorEvent,
        NOBLOCK,
        Option,
        PAIR,
        PEER,
        POLLERR,
        POLLIN,
        POLLOUT,
        PUB,
        PULL,
        PUSH,
        PeerState,
        RADIO,
        REP,
        REQ,
        ROUTER,
        SCATTER,
        SERVER,
        SNDMORE,
        STREAM,
        SUB,
        SocketType,
        XPUB,
        XSUB,
    )
    from tautline_zmq.errors import (
        AccessRefused,
        AddressInUse,
        AddressNotAvailable,
        Again,
        ContextTerminated,
        EFSM,
        EMTHREAD,
        ENOCOMPATPROTO,
        ETERM,
        Error,
        HostUnreachable,
        InvalidArgument,
        InvalidState,
        NotSupported,
        SocketClosed,
        TimedOut,
    )
    from tautline_zmq.monitor import Event, Monitor
    from tautline_zmq.peers import Peer, Statistics
    from tautline_zmq.security import (
        KeyPair,
        curve_client,
        curve_keypair,
        curve_public,
        curve_server,
        plain_client,
    )
    from tautline_zmq.sockets import Context, Poller, Socket, proxy

__all__ = [
    "AccessRefused",
    "AddressInUse",
    "AddressNotAvailable",
    "Again",
    "CHANNEL",
    "CLIENT",
    "Context",
    "ContextOption",
    "ContextTerminated",
    "DEALER",
    "DGRAM",
    "DISH",
    "DONTWAIT",
    "EFSM",
    "EMTHREAD",
    "ENOCOMPATPROTO",
    "ETERM",
    "Error",
    "Event",
    "Frame",
    "FrameProperty",
    "GATHER",
    "HostUnreachable",
    "InvalidArgument",
    "InvalidState",
    "KeyPair",
    "Mechanism",
    "Monitor",
    "MonitorEvent",
    "NOBLOCK",
    "NotSupported",
    "Option",
    "PAIR",
    "PEER",
    "POLLERR",
    "POLLIN",
    "POLLOUT",
    "PUB",
    "PULL",
    "PUSH",
    "Peer",
    "PeerState",
    "Poller",
    "RADIO",
    "REP",
    "REQ",
    "ROUTER",
    "SCATTER",
    "SERVER",
    "SNDMORE",
    "STREAM",
    "SUB",
    "Socket",
    "SocketClosed",
    "SocketType",
    "Statistics",
    "TimedOut",
    "XPUB",
    "XSUB",
    "active",
    "curve_client",
    "curve_keypair",
    "curve_public",
    "curve_server",
    "features",
    "install",
    "library_version",
    "loan",
    "plain_client",
    "proxy",
    "version",
]


def install() -> None:
    """Makes `import zmq` load Tautline first. If Python runs without startup files, call this before `import zmq`."""
    if _BeforeZmq not in sys.meta_path:
        sys.meta_path.insert(0, _BeforeZmq)


def active() -> bool:
    """Returns True if pyzmq runs on Tautline in this process. Imports zmq if it is not imported yet."""
    try:
        import zmq  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    from tautline_zmq import _selection

    selection: "Any" = _selection
    return bool(selection.in_use() != "pyzmq")


def version() -> str:
    """Returns the version of this package, which is the version of its Tautline."""
    from importlib.metadata import version as installed

    return installed("tautline-zmq")


def __getattr__(name: str) -> object:
    """Loads the native API at its first use."""
    if name in __all__:
        from tautline_zmq import _api

        return getattr(_api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _BeforeZmq:
    """First finder of the process. It loads the library or the backend before `zmq` is imported, and patches `zmq.asyncio`."""

    @staticmethod
    def find_spec(name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        # An error here must not stop the import: pyzmq then runs on its own library.
        try:
            if name == "zmq":
                from tautline_zmq import _selection

                selection: "Any" = _selection
                selection.choose()
            elif name == "zmq.backend.select":
                from tautline_zmq import _selection

                finder: "Any" = _selection
                return finder.find_spec(name, path, target)
            elif name == "zmq.asyncio":
                from tautline_zmq import _asyncio

                finder = _asyncio
                return finder.find_spec(name, path, target)
        except Exception:
            pass
        return None
