"""Exceptions. Each is an `Error`, which is an `OSError`: `errno` has the number of ZeroMQ, `strerror` the text.

The text names the method, the endpoint and the cause: `bind tcp://127.0.0.1:5555: address already in use`.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Dict, Optional, Type

from tautline_zmq import _causes, _native

__all__ = [
    "AccessRefused",
    "AddressInUse",
    "AddressNotAvailable",
    "Again",
    "ContextTerminated",
    "EFSM",
    "EMTHREAD",
    "ENOCOMPATPROTO",
    "ETERM",
    "Error",
    "HostUnreachable",
    "InvalidArgument",
    "InvalidState",
    "NotSupported",
    "SocketClosed",
    "TimedOut",
]

_OWN = 156384712
_LAST_ENDPOINT = 32
EFSM = _OWN + 51
"""Number of `InvalidState`."""
ENOCOMPATPROTO = _OWN + 52
"""Number of an `Error`: the transport does not suit the socket type."""
ETERM = _OWN + 53
"""Number of `ContextTerminated`."""
EMTHREAD = _OWN + 54
"""Number of an `Error`: the context has no I/O thread."""


class Error(OSError):
    """An error of a socket or a context. `errno` is a number of the module errno, or EFSM, ETERM and so on."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class Again(Error, BlockingIOError):
    """The operation would block, and the flag DONTWAIT forbids waiting."""


class TimedOut(Again, TimeoutError):
    """The option `rcvtimeo` or `sndtimeo` has ended the wait."""


class ContextTerminated(Error):
    """The context was terminated."""


class SocketClosed(Error):
    """The socket is closed, or a forked child uses a socket of its parent."""


class InvalidState(Error):
    """It is not the socket's turn: a REQ that has sent must receive, a REP that has received must send."""


class InvalidArgument(Error, ValueError):
    """The engine refuses a value, such as an endpoint or an option."""


class AddressInUse(Error):
    """Another socket is bound to the endpoint."""


class AddressNotAvailable(Error):
    """The endpoint names an address that this machine does not have."""


class AccessRefused(Error, PermissionError):
    """The system or a policy refuses the endpoint."""


class HostUnreachable(Error):
    """A mandatory ROUTER does not know the peer."""


class NotSupported(Error):
    """The transport does not exist, or the socket type does not have the operation."""


_CLASSES: Dict[int, Type[Error]] = {
    errno.EAGAIN: Again,
    ETERM: ContextTerminated,
    errno.ENOTSOCK: SocketClosed,
    EFSM: InvalidState,
    errno.EINVAL: InvalidArgument,
    errno.EADDRINUSE: AddressInUse,
    errno.EADDRNOTAVAIL: AddressNotAvailable,
    errno.ENODEV: AddressNotAvailable,
    errno.EACCES: AccessRefused,
    errno.EPERM: AccessRefused,
    errno.EHOSTUNREACH: HostUnreachable,
    errno.ENOTSUP: NotSupported,
    errno.EPROTONOSUPPORT: NotSupported,
}

_TEXTS = {
    errno.EAGAIN: "the operation would block",
    ETERM: "the context was terminated",
    errno.ENOTSOCK: "the socket is closed",
    EFSM: "not this socket's turn: send and receive must alternate",
    errno.EINVAL: "invalid argument",
    errno.EADDRINUSE: "address already in use",
    errno.EADDRNOTAVAIL: "this machine does not have the address",
    errno.ENODEV: "no such interface or host",
    errno.EHOSTUNREACH: "no peer with this routing id",
    errno.ENOTSUP: "the socket type does not have this operation",
    errno.EPROTONOSUPPORT: "no such transport",
    errno.ENOENT: "the socket has no such endpoint",
    errno.EMFILE: "too many sockets or descriptors",
    errno.EFAULT: "the context is closed",
    errno.ECONNREFUSED: "no socket is bound to this address",
    ENOCOMPATPROTO: "the transport does not suit the socket type",
    EMTHREAD: "the context has no I/O thread",
}


def made(number: int, place: str, owner: Any = None) -> Error:
    """Returns the exception for an error number. `place` names the method and its object.

    `owner` is the socket or the context, which is examined if it may belong to another process.
    """
    if number in (errno.ENOTSOCK, errno.EINTR) and owner is not None and _causes.is_foreign(owner):
        if number == errno.ENOTSOCK:
            reason = "the socket belongs to the parent process. After a fork, open sockets in a context of the child"
            return SocketClosed(number, f"{place}: {reason}")
        reason = "the context belongs to the parent process. After a fork, make a context in the child"
        return Error(errno.EFAULT, f"{place}: {reason}")
    reason = _TEXTS.get(number) or os.strerror(number)
    return _CLASSES.get(number, Error)(number, f"{place}: {reason}" if place else reason)


def number_of(error: BaseException) -> Optional[int]:
    """Returns the number of an error of the engine, or `None` for every other exception."""
    if isinstance(error, Error):
        return None
    kind = type(error)
    if kind is OSError or kind.__module__ == "zmq.error" or isinstance(error, OSError):
        number: Any = getattr(error, "errno", None)
        return number if isinstance(number, int) else None
    return None


def convert(error: BaseException, method: str, socket: Any, waits: bool = False) -> BaseException:
    """Returns the `Error` for an exception that `method` of `socket` has raised. Keeps exceptions of other kinds.

    `waits` is true if the method waits as long as `rcvtimeo` or `sndtimeo` allow.
    """
    number = number_of(error)
    if number is None:
        return error
    place = f"{method} on {describe(socket)}"
    if number != errno.EAGAIN or not waits:
        return made(number, place, socket)
    sends = method.startswith("send")
    try:
        timeout = socket._get_int(28 if sends else 27)
    except OSError:
        timeout = -1
    return timed_out(place, "send" if sends else "recv", timeout, socket)


def timed_out(place: str, direction: str, timeout: int, socket: Any = None) -> TimedOut:
    """Returns the exception for a wait that has reached its limit of `timeout` milliseconds.

    The text adds the cause if the `socket` knows it: no peer is connected, or there is no subscription.
    """
    event = "no peer had room" if direction == "send" else "no message arrived"
    cause = "" if socket is None else _causes.of_timeout(socket)
    return TimedOut(errno.EAGAIN, f"{place}: {event} within {timeout} ms" + (f": {cause}" if cause else ""))


def at_endpoint(error: Exception, method: str, endpoint: Any, socket: Any) -> Exception:
    """Returns the exception for a `bind`, `connect`, `unbind` or `disconnect` that has failed."""
    number = number_of(error)
    if number is None:
        if isinstance(error, TypeError) and not isinstance(endpoint, str):
            return TypeError(f"{method}: the endpoint is a str, not {type(endpoint).__name__}")
        return error
    place = f"{method} {endpoint}"
    binds = method in ("bind", "unbind")
    if number == errno.EINVAL and isinstance(endpoint, str):
        reason = ": ".join(filter(None, [_TEXTS[number], _causes.malformed(endpoint, binds)]))
        return InvalidArgument(number, f"{place}: {reason}")
    if number == errno.ENOENT and method == "bind":
        folder = _causes.missing_folder(endpoint)
        reason = f"the directory {folder} does not exist" if folder else os.strerror(number)
        return Error(number, f"{place}: {reason}")
    return made(number, place, socket)


def describe(socket: Any) -> str:
    """Returns the type of a socket, and its last endpoint if there is one: `PULL tcp://127.0.0.1:5555`."""
    name = getattr(getattr(socket, "_kind", None), "name", "socket")
    read: Any = getattr(_native.Socket, "get")
    try:
        # The method of the base class, whose errors do not come here.
        endpoint = read(socket, _LAST_ENDPOINT).decode(errors="replace")
    except Exception:
        endpoint = ""
    return f"{name} {endpoint}" if endpoint else name
