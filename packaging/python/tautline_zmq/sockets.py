"""Contexts and sockets for programs without an event loop, and `Poller`."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Dict, Generic, Iterator, List, Optional, Tuple, Type, TypeVar, Union

from tautline_zmq import _native, errors
from tautline_zmq import peers as _peers
from tautline_zmq._options import Options
from tautline_zmq.constants import POLLIN, POLLOUT, ContextOption, MonitorEvent, Option, SocketType

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from tautline_zmq.monitor import Monitor

__all__ = ["Context", "ContextBase", "Poller", "Socket", "SocketBase", "proxy"]

S = TypeVar("S", bound="SocketBase")

# Maximum linger time in milliseconds if an exception leaves a `with` block.
_LINGER_AFTER_ERROR = 1000

# Numbers of the endpoints of monitors.
_numbers = itertools.count(1)


class ClosedByWith:
    """The end of a `with` block closes the object."""

    __slots__ = ()

    # The option `linger`, in milliseconds. -1 is unlimited.
    _linger: int

    if TYPE_CHECKING:

        def close(self, linger: Optional[int] = None) -> None: ...

    def _close_after_error(self) -> None:
        """Closes the object, and limits `linger` so that unsent messages do not hide the exception for long."""
        self.close(self._linger if 0 <= self._linger <= _LINGER_AFTER_ERROR else _LINGER_AFTER_ERROR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Closes the object. After an exception, `linger` is at most 1,000 ms."""
        if kind is None:
            self.close()
        else:
            self._close_after_error()


def _failure(error: Exception, place: str, owner: Any = None) -> Exception:
    """Returns the exception to raise for an error of the native module. `owner` is the socket or the context."""
    number = errors.number_of(error)
    return error if number is None else errors.made(number, place, owner)


def _topic(method: str, topic: Any) -> bytes:
    """Returns a topic as bytes."""
    if isinstance(topic, str):
        return topic.encode()
    if isinstance(topic, bytes):
        return topic
    raise TypeError(f"{method}: the topic is bytes or str, not {type(topic).__name__}")


class SocketBase(Options, ClosedByWith):
    """The common part of all sockets: options, endpoints, events and counters. `Context.socket` makes a socket."""

    __slots__ = ()

    _kind: SocketType

    def __init__(self, context: ContextBase[Any], socket_type: Union[SocketType, int]) -> None:
        if not isinstance(socket_type, int):
            raise TypeError(f"socket: the type is a SocketType, such as PUSH, not {socket_type!r}")
        self._kind = SocketType(socket_type)
        try:
            super().__init__(context, int(socket_type), copy_threshold=0)
        except Exception as error:
            raise _failure(error, f"socket {self._kind.name}", context) from None
        # Reading the option later would wait for a blocked call of another thread.
        self._linger = self._get_int(Option.LINGER)

    @property
    def type(self) -> SocketType:
        """Type of the socket."""
        return self._kind

    def bind(self, addr: str) -> str:
        """Accepts connections at an endpoint, and returns the endpoint with the port that the system chose.

        Endpoints: `tcp://*:5555`, `tcp://127.0.0.1:*` (any free port), `ipc:///tmp/name`, `inproc://name`, and the
        others of ZeroMQ. Raises AddressInUse, AddressNotAvailable, AccessRefused, InvalidArgument, NotSupported.
        """
        try:
            self._bind(addr)
        except Exception as error:
            raise errors.at_endpoint(error, "bind", addr, self) from None
        return self.last_endpoint

    def connect(self, addr: str) -> None:
        """Connects to an endpoint in the background, and reconnects when the connection is lost.

        Raises InvalidArgument for a malformed endpoint, AccessRefused, NotSupported.
        """
        try:
            super().connect(addr)
        except Exception as error:
            raise errors.at_endpoint(error, "connect", addr, self) from None

    def unbind(self, addr: str) -> None:
        """Stops accepting connections at an endpoint. Raises Error with ENOENT if the socket is not bound to it."""
        try:
            super().unbind(addr)
        except Exception as error:
            raise errors.at_endpoint(error, "unbind", addr, self) from None

    def disconnect(self, addr: str) -> None:
        """Closes the connection to an endpoint. Raises Error with ENOENT if the socket is not connected to it."""
        try:
            super().disconnect(addr)
        except Exception as error:
            raise errors.at_endpoint(error, "disconnect", addr, self) from None

    def subscribe(self, topic: Union[str, bytes]) -> None:
        """Receives the messages that begin with `topic` (SUB; XPUB with `xpub_manual`). "" stands for all messages.

        Raises InvalidArgument for other socket types.
        """
        body = _topic("subscribe", topic)
        try:
            self._set_bytes(Option.SUBSCRIBE, body)
        except errors.Error as error:
            raise errors.made(error.errno or 0, f"subscribe {topic!r} on {errors.describe(self)}", self) from None

    def unsubscribe(self, topic: Union[str, bytes]) -> None:
        """Undoes one `subscribe` with the same topic. Raises InvalidArgument for other socket types."""
        body = _topic("unsubscribe", topic)
        try:
            self._set_bytes(Option.UNSUBSCRIBE, body)
        except errors.Error as error:
            raise errors.made(error.errno or 0, f"unsubscribe {topic!r} on {errors.describe(self)}", self) from None

    def join(self, group: str) -> None:
        """Receives the messages of a group (DISH). Raises InvalidArgument for other types and repeated groups."""
        try:
            super().join(group)
        except Exception as error:
            raise _failure(error, f"join {group}", self) from None

    def leave(self, group: str) -> None:
        """Undoes `join`. Raises InvalidArgument if the socket is not in the group."""
        try:
            super().leave(group)
        except Exception as error:
            raise _failure(error, f"leave {group}", self) from None

    def get(self, option: int) -> int:
        """Returns the value of an option that is an int, by its number; see `Option`. Prefer the typed properties.

        Raises InvalidArgument if the option does not exist or has another type.
        """
        return self._get_int(option)

    def set(self, option: int, value: Union[int, bytes, str]) -> None:
        """Sets an option by its number; see `Option`. Prefer the typed properties.

        Raises InvalidArgument if the option does not exist, has another type, or refuses the value.
        """
        if isinstance(value, int):
            self._set_int(option, value)
        elif isinstance(value, (bytes, str)):
            self._set_bytes(option, value.encode() if isinstance(value, str) else value)
        else:
            raise TypeError(f"set {option!r}: the value is an int, bytes or str, not {type(value).__name__}")
        if option == Option.LINGER:
            self._linger = self._get_int(option)

    def statistics(self) -> _peers.Statistics:
        """Returns the counters of the socket."""
        return _peers.statistics(self)

    def peers(self) -> List[_peers.Peer]:
        """Returns the peers of the socket with their counters, also those that it still connects to."""
        return _peers.peers(self)

    def wait_for_peers(self, count: int = 1) -> None:
        """Waits until `count` peers are connected. Raises TimedOut after `sndtimeo` milliseconds."""
        self._wait_for(Option.TAUTLINE_WAIT_PEERS, count, f"wait_for_peers({count})")

    def wait_for_subscriptions(self, count: int = 1) -> None:
        """Waits until the peers of a PUB or XPUB have subscribed to `count` different topics.

        Raises TimedOut after `sndtimeo` milliseconds.
        """
        self._wait_for(Option.TAUTLINE_WAIT_SUBSCRIPTIONS, count, f"wait_for_subscriptions({count})")

    def _wait_for(self, option: int, count: int, place: str) -> None:
        try:
            self._set_int(option, count)
        except errors.Error as error:
            place = f"{place} on {errors.describe(self)}"
            if isinstance(error, errors.Again):
                raise errors.TimedOut(error.errno, f"{place}: not reached within {self.sndtimeo} ms") from None
            raise errors.made(error.errno or 0, place, self) from None

    def _start_monitor(self, events: MonitorEvent) -> str:
        """Reports events to a new address, and returns the address."""
        address = f"inproc://tautline.monitor.{os.getpid()}.{next(_numbers)}"
        self._monitor(address, int(events))
        return address

    def _stop_monitor(self) -> None:
        if not self.closed:
            try:
                self._monitor(None, 0)
            except errors.Error:
                pass

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the socket. `linger` replaces the option `linger`, in milliseconds. A second call has no effect.

        Queued messages are still sent in the background, for `linger` milliseconds at most. A blocked call of another
        thread ends with SocketClosed.
        """
        try:
            super().close(linger)
        except Exception as error:
            raise _failure(error, "close") from None

    def __del__(self, warn: Any = warnings.warn, is_finalizing: Any = sys.is_finalizing) -> None:
        if is_finalizing():
            return
        # An open socket would keep its context from terminating. A forked child leaves those of its parent alone.
        if not self.closed and self.context._pid == os.getpid():
            warn(f"unclosed socket {self!r}", ResourceWarning, source=self)
            self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<{type(self).__name__} {self._kind.name}, closed>"
        return f"<{type(self).__name__} {errors.describe(self)}>"


class _NotAsync:
    """Explains the mistake if a program awaits an object of this module."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def _refuse(self, *_arguments):
            name = f"{type(self).__module__}.{type(self).__name__}"
            raise TypeError(f"{name} blocks and cannot be awaited: make the sockets with tautline_zmq.aio.Context")

        __await__ = __aiter__ = __aenter__ = __aexit__ = _refuse


class Socket(_NotAsync, SocketBase, _native.SyncSocket):
    """A socket. One thread at a time uses it. `Context.socket` makes one.

    As a context manager, it closes itself at the end. If an exception leaves the block, `linger` is at most 1,000 ms.
    """

    __slots__ = ("_kind", "_linger")

    def poll(self, timeout: Optional[int] = None, flags: int = POLLIN) -> int:
        """Waits up to `timeout` milliseconds until POLLIN or POLLOUT is possible, and returns the possible events.

        `None` waits without limit. Returns 0 after the timeout. Raises SocketClosed, ContextTerminated.
        """
        try:
            ready = _native.zmq_poll([(self, flags)], -1 if timeout is None else timeout)
        except Exception as error:
            raise errors.convert(error, "poll", self) from None
        return int(ready[0][1]) if ready else 0

    def send_string(self, text: str, flags: int = 0, encoding: str = "utf-8") -> None:
        """Sends a text as one part. The errors are those of `send`."""
        if not isinstance(text, str):
            raise TypeError(f"send_string: the text is a str, not {type(text).__name__}. Use `send` for bytes")
        self.send(text.encode(encoding), flags)

    def recv_string(self, flags: int = 0, encoding: str = "utf-8") -> str:
        """Receives one part as a text. Raises UnicodeDecodeError, and the errors of `recv`."""
        return self.recv(flags).decode(encoding)

    def send_json(self, value: Any, flags: int = 0) -> None:
        """Sends a value as JSON in one part. The errors are those of json.dumps and `send`."""
        self.send(json.dumps(value, separators=(",", ":")).encode(), flags)

    def recv_json(self, flags: int = 0) -> Any:
        """Receives a value as JSON. The errors are those of `recv` and json.loads."""
        return json.loads(self.recv(flags))

    def monitor(self, events: MonitorEvent = MonitorEvent.ALL) -> Monitor:
        """Reports events of the socket's connections from now on. A second call replaces the first.

        Raises ContextTerminated.
        """
        from tautline_zmq.monitor import Monitor

        receiver: Socket = self.context.socket(SocketType.PAIR)
        receiver.connect(self._start_monitor(events))
        return Monitor(self, receiver)


class ContextBase(_native.Context, Generic[S]):
    """The common part of all contexts. An unknown attribute raises AttributeError. To add attributes, make a subclass."""

    __slots__ = ("_pid", "_sockets")

    _socket_class: Type[S]
    _instances: Dict[Type[Any], Tuple[int, Any]] = {}
    _lock = threading.Lock()

    def __init__(self, io_threads: int = 1) -> None:
        try:
            super().__init__(io_threads)
        except Exception as error:
            raise _failure(error, f"Context(io_threads={io_threads})") from None
        self._sockets: weakref.WeakSet[S] = weakref.WeakSet()
        self._pid = os.getpid()

    @classmethod
    def instance(cls) -> Self:
        """Returns the context that the whole process shares. A forked child gets a new one."""
        with ContextBase._lock:
            context: Optional[Self]
            pid, context = ContextBase._instances.get(cls, (0, None))
            if context is None or context.closed or pid != os.getpid():
                context = cls()
                ContextBase._instances[cls] = (os.getpid(), context)
            return context

    def socket(self, socket_type: Union[SocketType, int]) -> S:
        """Opens a socket. Raises Error with EMFILE at the limit `max_sockets`, ContextTerminated."""
        socket = self._socket_class(self, socket_type)
        self._sockets.add(socket)
        return socket

    @property
    def io_threads(self) -> int:
        """Number of I/O threads. Set it before the first socket. Default 1."""
        return self._get(ContextOption.IO_THREADS)

    @io_threads.setter
    def io_threads(self, value: int) -> None:
        self._set(ContextOption.IO_THREADS, value)

    @property
    def max_sockets(self) -> int:
        """Maximum number of open sockets. Default 1023."""
        return self._get(ContextOption.MAX_SOCKETS)

    @max_sockets.setter
    def max_sockets(self, value: int) -> None:
        self._set(ContextOption.MAX_SOCKETS, value)

    @property
    def ipv6(self) -> bool:
        """Default of the option `ipv6` of later sockets."""
        return self._get(ContextOption.IPV6) != 0

    @ipv6.setter
    def ipv6(self, value: bool) -> None:
        self._set(ContextOption.IPV6, int(value))

    @property
    def blocky(self) -> bool:
        """False: later sockets start with a `linger` of 0, so `term` does not wait for unsent messages. Default true."""
        return self._get(ContextOption.BLOCKY) != 0

    @blocky.setter
    def blocky(self, value: bool) -> None:
        self._set(ContextOption.BLOCKY, int(value))

    @property
    def observe(self) -> bool:
        """True: tools outside of the process see the sockets, never their messages. Set it before the first socket."""
        return self._get(ContextOption.TAUTLINE_OBSERVE) != 0

    @observe.setter
    def observe(self, value: bool) -> None:
        self._set(ContextOption.TAUTLINE_OBSERVE, int(value))

    def set_policy(self, policy: str) -> None:
        """Applies a policy to later binds and connects: audit, loopback, strict, or the path of a policy file.

        Raises InvalidArgument if the policy is invalid, or if the context already has one.
        """
        self._set_text(ContextOption.TAUTLINE_POLICY, policy)

    def set_names(self, path: str) -> None:
        """Resolves names (`name://orders`) of later binds and connects by a names file.

        Raises InvalidArgument if the file is invalid, or if the context already has one.
        """
        self._set_text(ContextOption.TAUTLINE_NAMES, path)

    def _get(self, option: ContextOption) -> int:
        try:
            return super().get(option)
        except Exception as error:
            raise _failure(error, f"get {option.name}", self) from None

    def _set(self, option: ContextOption, value: int) -> None:
        if not isinstance(value, int):
            raise TypeError(f"{option.name.lower()} is an int, not {type(value).__name__}")
        try:
            super().set(option, value)
        except Exception as error:
            raise _failure(error, f"set {option.name}", self) from None

    def _set_text(self, option: ContextOption, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"{option.name}: the value is a str, not {type(value).__name__}")
        try:
            _native.set_context_text(self, option, value)
        except Exception as error:
            raise _failure(error, f"set {option.name} {value}", self) from None

    def close_sockets(self, linger: Optional[int] = None) -> None:
        """Closes all sockets of this context. `linger` replaces their option, in milliseconds."""
        for socket in self._open_sockets():
            socket.close(linger)

    def _open_sockets(self) -> List[S]:
        while True:
            try:
                return list(self._sockets)
            except RuntimeError:
                # Before Python 3.14, a thread that opens a socket ends the iteration.
                continue

    def _close_sockets_after(self, kind: Optional[Type[BaseException]]) -> None:
        """Closes all sockets at the end of a `with` block. `kind` is the type of the exception that leaves it."""
        if kind is None:
            self.close_sockets()
            return
        for socket in self._open_sockets():
            socket._close_after_error()

    def term(self) -> None:
        """Terminates the context. Waits until all sockets are closed and their messages are sent or have expired.

        Calls of other threads on the sockets end with ContextTerminated. Has no effect in a forked child.
        """
        try:
            super().term()
        except Exception as error:
            raise _failure(error, "term", self) from None

    def destroy(self, linger: Optional[int] = None) -> None:
        """Closes all sockets, as `close_sockets`, and terminates the context."""
        if not self.closed:
            self.close_sockets(linger)
            self.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Closes the sockets and terminates the context. After an exception, `linger` is at most 1,000 ms."""
        if not self.closed:
            self._close_sockets_after(kind)
            self.term()

    def __del__(self, warn: Any = warnings.warn, is_finalizing: Any = sys.is_finalizing) -> None:
        # `_pid` is missing if the constructor has failed. A forked child leaves the contexts of its parent alone.
        if is_finalizing() or self.closed or getattr(self, "_pid", None) != os.getpid():
            return
        warn(f"unclosed context {self!r}", ResourceWarning, source=self)
        self._term_in_background()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self._sockets)} sockets"
        return f"<{type(self).__name__}, {state}>"


class Context(_NotAsync, ContextBase[Socket]):
    """Container of sockets with its I/O threads. A program needs one: `Context()`, or `Context.instance()`.

    As a context manager, it closes its sockets at the end and terminates itself. It then waits until the queued
    messages are sent, as long as `linger` allows. If an exception leaves the block, each open socket gets a `linger`
    of at most 1,000 ms, so the program shows the exception soon.
    """

    __slots__ = ()
    _socket_class = Socket


class Poller:
    """Waits for several sockets and descriptors at the same time."""

    def __init__(self) -> None:
        self._entries: Dict[Any, int] = {}

    def register(self, socket: Any, flags: int = POLLIN | POLLOUT) -> None:
        """Adds a socket, a descriptor or an object with `fileno()`, or changes its events. 0 removes it."""
        if flags:
            self._entries[socket] = flags
        else:
            self._entries.pop(socket, None)

    def modify(self, socket: Any, flags: int = POLLIN | POLLOUT) -> None:
        """The same as `register`."""
        self.register(socket, flags)

    def unregister(self, socket: Any) -> None:
        """Removes a socket or a descriptor. Raises KeyError if it is not registered."""
        del self._entries[socket]

    def poll(self, timeout: Optional[int] = None) -> List[Tuple[Any, int]]:
        """Waits up to `timeout` milliseconds for an event. `None` waits without limit.

        Returns pairs of a socket or descriptor and its events; an empty list after the timeout. Raises SocketClosed,
        ContextTerminated.
        """
        try:
            return _native.zmq_poll(list(self._entries.items()), -1 if timeout is None else timeout)
        except Exception as error:
            raise _failure(error, "poll") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def proxy(frontend: SocketBase, backend: SocketBase, capture: Optional[SocketBase] = None) -> None:
    """Forwards messages between two sockets, and copies them to `capture`. Ends with ContextTerminated."""
    try:
        _native.proxy(frontend, backend, capture)
    except Exception as error:
        raise _failure(error, "proxy") from None
