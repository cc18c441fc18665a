"""The methods of asynchronous sockets. `aio` and `aio_anyio` add the waiting for their event loops."""

from __future__ import annotations

import errno
import json
from collections import deque
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Deque,
    Iterable,
    List,
    Optional,
    Sequence,
    TypeVar,
    Union,
    overload,
)

from tautline_zmq import _native, errors
from tautline_zmq.constants import DONTWAIT, POLLIN, POLLOUT, MonitorEvent, Option, SocketType
from tautline_zmq.monitor import Event, parse
from tautline_zmq.sockets import SocketBase

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Buffer, Self

    from tautline_zmq._frame import Frame

T = TypeVar("T")

# Messages that `send_many` sends before it gives way to other tasks.
_CHUNK = 256


class Direction:
    """The tasks of one event loop that wait in one direction."""

    __slots__ = ("busy", "events", "index", "is_over", "other", "queue", "ready", "timeout")

    other: Direction

    def __init__(self, index: int, events: int, timeout: int) -> None:
        self.index = index
        self.events = events
        # Number of the option with the limit of a wait.
        self.timeout = int(timeout)
        # True while a task has the turn. Only this task tries the operation.
        self.busy = False
        # True if the socket has moved to another event loop. A task of the old loop, if it is collected later, must not
        # touch the waits of the new one.
        self.is_over = False
        self.queue: Deque[Any] = deque()
        self.ready: Any = None


class AsyncSocket(SocketBase, _native.NativeSocket):
    """A socket whose methods that wait are coroutines. All calls come from the thread of one event loop.

    Several tasks may receive, and several may send: they get their turn in the order of their calls. A cancelled receive
    takes no message, and a cancelled send sends none. After 64 calls that succeed at once, or after 0.5 ms, a call lets
    the other tasks of the event loop run first.

    `with` and `async with` close the socket at the end. If an exception leaves the block, `linger` is at most 1,000 ms.
    """

    __slots__ = ("_kind", "_linger", "_receiving", "_sending")

    def __init__(self, context: Any, socket_type: Union[SocketType, int]) -> None:
        self._begin_directions()
        super().__init__(context, socket_type)

    def _begin_directions(self) -> None:
        self._receiving = Direction(0, POLLIN, Option.RCVTIMEO)
        self._sending = Direction(1, POLLOUT, Option.SNDTIMEO)
        self._receiving.other = self._sending
        self._sending.other = self._receiving

    def _restart_directions(self, direction: Direction) -> Direction:
        """Forgets the tasks of the last event loop. Returns the new object for a direction."""
        for old in (self._receiving, self._sending):
            old.is_over = True
            self._end_wait(old.index)
        self._begin_directions()
        return self._sending if direction.index else self._receiving

    def _wait(self, direction: Direction, take: Callable[[], Optional[T]]) -> Awaitable[T]:
        """Calls `take` when it is the caller's turn and the socket is ready, until it does not return `None`.

        If no other task waits and the turn is not over, the caller has just tried in vain.
        """
        raise NotImplementedError

    def _wait_for_events(self, flags: int, timeout: Optional[int]) -> Awaitable[int]:
        raise NotImplementedError

    def _give_way(self) -> Awaitable[None]:
        """Lets the other tasks run."""
        raise NotImplementedError

    def _would_block(self, method: str) -> errors.Error:
        return errors.made(errno.EAGAIN, f"{method} on {errors.describe(self)}")

    @overload
    async def recv(self, flags: int = 0, copy: Literal[True] = True) -> bytes: ...
    @overload
    async def recv(self, flags: int, copy: Literal[False]) -> Frame: ...
    @overload
    async def recv(self, flags: int = 0, *, copy: Literal[False]) -> Frame: ...
    async def recv(self, flags: int = 0, copy: bool = True) -> Any:
        """Receives one part of a message: bytes, or a Frame without a copy if `copy` is false.

        Raises TimedOut after `rcvtimeo` milliseconds, Again with the flag DONTWAIT, InvalidState if it is not the
        socket's turn (REQ, REP), SocketClosed, ContextTerminated.
        """
        message = self._recv_now() if copy else self._recv_frame_now()
        if message is not None:
            return message
        if flags & DONTWAIT:
            return self._at_once(self._receiving, partial(self._try_recv, copy), "recv")
        return await self._wait(self._receiving, self._try_recv if copy else partial(self._try_recv, False))

    @overload
    async def recv_multipart(self, flags: int = 0, copy: Literal[True] = True) -> List[bytes]: ...
    @overload
    async def recv_multipart(self, flags: int, copy: Literal[False]) -> List[Frame]: ...
    @overload
    async def recv_multipart(self, flags: int = 0, *, copy: Literal[False]) -> List[Frame]: ...
    async def recv_multipart(self, flags: int = 0, copy: bool = True) -> Any:
        """Receives all parts of a message as a list of bytes, or of Frames if `copy` is false.

        The errors are those of `recv`.
        """
        message = self._recv_multipart_now(copy)
        if message is not None:
            return message
        take = partial(self._try_recv_multipart, copy)
        if flags & DONTWAIT:
            return self._at_once(self._receiving, take, "recv_multipart")
        return await self._wait(self._receiving, take)

    async def recv_into(self, buffer: Buffer, /, *, nbytes: int = 0, flags: int = 0) -> int:
        """Receives one part of a message into a writable buffer, and returns the length of the part.

        Bytes that do not fit into the buffer are lost: compare the result with the buffer's length. `nbytes` limits the
        used bytes of the buffer; 0 stands for all. Another task must not use the buffer until the coroutine has ended.

        Raises BufferError if the buffer is not writable or not contiguous, and the errors of `recv`.
        """
        length = self._recv_into_now(buffer, nbytes)
        if length is not None:
            return length
        take = partial(self._try_recv_into, buffer, nbytes)
        if flags & DONTWAIT:
            return self._at_once(self._receiving, take, "recv_into")
        return await self._wait(self._receiving, take)

    async def recv_many(self, max: int = 1000) -> List[bytes]:
        """Waits for a message, takes the others that have arrived, and returns their parts as a list of bytes.

        The list has at least one part, and at most `max` parts unless the last message has more: a message is never
        cut. The errors are those of `recv`.
        """
        messages = self._recv_many_now(max, False)
        if messages is not None:
            return messages
        return await self._wait(self._receiving, partial(self._try_recv_many, max, False))

    async def recv_many_multipart(self, max: int = 1000) -> List[List[bytes]]:
        """Like `recv_many`, with a list of bytes for each message."""
        messages = self._recv_many_now(max, True)
        if messages is not None:
            return messages
        return await self._wait(self._receiving, partial(self._try_recv_many, max, True))

    def recv_batch(self, max: int = 1000) -> List[bytes]:
        """Takes the messages that have arrived, and returns their parts as a list of bytes. Never waits.

        The list is empty if no message has arrived, or if another task waits for messages.
        """
        if self._receiving.busy:
            return []
        return self._try_recv_many(max, False) or []

    async def send(
        self,
        data: Buffer,
        flags: int = 0,
        copy: bool = True,
        *,
        routing_id: Optional[int] = None,
        group: Optional[str] = None,
    ) -> None:
        """Sends one part of a message: bytes, a Frame, or another object with the buffer protocol.

        `flags` may have SNDMORE and DONTWAIT. If several tasks send, use `send_multipart` in place of SNDMORE. The
        object must not change until the coroutine has ended, and if `copy` is false, until the message has left.
        `routing_id` names the peer of a SERVER or PEER socket, `group` the group of a RADIO socket.

        Raises TimedOut after `sndtimeo` milliseconds, Again with DONTWAIT, InvalidState if it is not the socket's turn
        (REQ, REP), HostUnreachable if a mandatory ROUTER does not know the peer, SocketClosed, ContextTerminated.
        """
        if routing_id is not None or group is not None:
            data = self._addressed(data, routing_id, group)
        if self._send_now(data, flags, copy) is None:
            take = partial(self._try_send, data, flags, copy)
            if flags & DONTWAIT:
                self._at_once(self._sending, take, "send")
            else:
                await self._wait(self._sending, take)

    def _addressed(self, data: Buffer, routing_id: Optional[int], group: Optional[str]) -> _native.Frame:
        """Returns a message as a frame for a peer or a group."""
        frame = data if isinstance(data, _native.Frame) else _native.Frame(data, copy=True)
        try:
            if routing_id is not None:
                frame.set("routing_id", routing_id)
            if group is not None:
                frame.set("group", group)
        except Exception as error:
            raise errors.convert(error, "send", self) from None
        return frame

    async def send_multipart(self, parts: Iterable[Buffer], flags: int = 0, copy: bool = True) -> None:
        """Sends the parts of a message, all of them or none.

        The arguments and errors are those of `send`. Raises ValueError if there are no parts.
        """
        if not isinstance(parts, (list, tuple)):
            parts = list(parts)
        if self._send_multipart_now(parts, copy) is None:
            take = partial(self._try_send_multipart, parts, copy)
            if flags & DONTWAIT:
                self._at_once(self._sending, take, "send_multipart")
            else:
                await self._wait(self._sending, take)

    async def send_many(self, messages: Iterable[Union[Buffer, Sequence[Buffer]]]) -> int:
        """Sends each item of an iterable as one message, and returns their number.

        An item is an object with the buffer protocol, or a list or tuple of such objects for a message of several
        parts. The errors are those of `send`; the messages before the failure are sent. If the coroutine is cancelled,
        the rest is not sent.
        """
        left = list(messages)
        total = len(left)
        at = 0
        while at < total:
            chunk = left[at : at + _CHUNK]
            sent = None if self._sending.busy else self._send_some(chunk)
            if sent is None:
                sent = await self._wait(self._sending, partial(self._send_some, chunk))
            elif at + sent < total:
                await self._give_way()
            at += sent
        return total

    def _send_some(self, chunk: List[Any]) -> Optional[int]:
        return self._try_send_many(chunk) or None

    def _at_once(self, direction: Direction, take: Callable[[], Optional[T]], method: str) -> T:
        result = None if direction.busy else take()
        if result is None:
            raise self._would_block(method)
        return result

    async def poll(self, timeout: Optional[int] = None, flags: int = POLLIN) -> int:
        """Waits up to `timeout` milliseconds until POLLIN or POLLOUT is possible, and returns the possible events.

        `None` waits without limit. Returns 0 after the timeout. Raises SocketClosed, ContextTerminated.
        """
        ready = self.events & flags
        if ready or timeout == 0:
            return ready
        return await self._wait_for_events(flags, timeout)

    async def send_string(self, text: str, flags: int = 0, encoding: str = "utf-8") -> None:
        """Sends a text as one part. The errors are those of `send`."""
        if not isinstance(text, str):
            raise TypeError(f"send_string: the text is a str, not {type(text).__name__}. Use `send` for bytes")
        await self.send(text.encode(encoding), flags)

    async def recv_string(self, flags: int = 0, encoding: str = "utf-8") -> str:
        """Receives one part as a text. Raises UnicodeDecodeError, and the errors of `recv`."""
        return (await self.recv(flags)).decode(encoding)

    async def send_json(self, value: Any, flags: int = 0) -> None:
        """Sends a value as JSON in one part. The errors are those of json.dumps and `send`."""
        await self.send(json.dumps(value, separators=(",", ":")).encode(), flags)

    async def recv_json(self, flags: int = 0) -> Any:
        """Receives a value as JSON. The errors are those of `recv` and json.loads."""
        return json.loads(await self.recv(flags))

    if not TYPE_CHECKING:

        def __iter__(self):
            raise TypeError("a socket of tautline_zmq.aio is iterated with `async for`, not with `for`")

    def __aiter__(self) -> Self:
        """Iterates over the parts that arrive, as `recv` does, until the socket is closed."""
        return self

    async def __anext__(self) -> bytes:
        try:
            message: Optional[bytes] = self._recv_now()
            if message is not None:
                return message
            return await self._wait(self._receiving, self._try_recv)
        except errors.SocketClosed:
            raise StopAsyncIteration from None

    def monitor(self, events: MonitorEvent = MonitorEvent.ALL) -> AsyncMonitor:
        """Reports events of the socket's connections from now on. A second call replaces the first.

        Raises ContextTerminated.
        """
        receiver: AsyncSocket = self.context.socket(SocketType.PAIR)
        receiver.connect(self._start_monitor(events))
        return AsyncMonitor(self, receiver)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.__exit__(kind, error, trace)


class AsyncMonitor:
    """The events of a socket: `async for event in socket.monitor()`. Close it with `close` or `with`.

    The iteration ends when the monitored socket is closed.
    """

    def __init__(self, socket: AsyncSocket, receiver: AsyncSocket) -> None:
        self._socket = socket
        self._receiver = receiver

    async def next(self) -> Optional[Event]:
        """Waits for the next event. Returns `None` if there are no more. Raises ContextTerminated."""
        event = parse(await self._receiver.recv_multipart())
        return None if event.event == MonitorEvent.MONITOR_STOPPED else event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Stops the events. Has no effect on the monitored socket."""
        self._socket._stop_monitor()
        self._receiver.close(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
