"""Contexts and sockets for trio, and for every event loop that anyio supports. Needs the package anyio.

The methods are those of `tautline_zmq.aio`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Awaitable, Callable, Deque, Optional, TypeVar, Union

import anyio
import anyio.lowlevel

from tautline_zmq import _native, errors
from tautline_zmq._async import AsyncMonitor, AsyncSocket, Direction
from tautline_zmq.constants import SocketType
from tautline_zmq.sockets import ContextBase

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncMonitor", "Context", "Socket"]

T = TypeVar("T")

_READY = _native.Readiness.READY
_SOON = _native.Readiness.SOON

# A different object in each event loop.
_loop_mark: anyio.lowlevel.RunVar[Optional[object]] = anyio.lowlevel.RunVar("tautline_zmq.loop", None)


class _Watch:
    """The tasks of one event loop that wait for the descriptor of a socket."""

    __slots__ = ("edge", "is_watched", "waiting")

    def __init__(self) -> None:
        # True while a task watches the descriptor for all.
        self.is_watched = False
        # Set when the socket may have become ready.
        self.edge: Optional[anyio.Event] = None
        # Number of tasks that wait for each event.
        self.waiting = {1: 0, 2: 0}

    def notify(self) -> None:
        if self.edge is not None:
            self.edge.set()
            self.edge = None


class Socket(AsyncSocket):
    """A socket for anyio. It belongs to the event loop of the first call that waits.

    See the methods of the base class. Several tasks may receive, and several may send: they get their turn in the order
    of their calls. A cancelled receive takes no message, and a cancelled send sends none.
    """

    __slots__ = ("_loop", "_readiness", "_watch")

    def __init__(self, context: Any, socket_type: Union[SocketType, int]) -> None:
        super().__init__(context, socket_type)
        self._readiness: Optional[_native.Readiness] = None
        self._watch = _Watch()
        # The mark of the event loop that uses the socket.
        self._loop: object = None

    def _attach(self, direction: Direction) -> Direction:
        """Forgets the tasks of an earlier event loop, which has ended. Returns the current object for a direction."""
        loop = _loop_mark.get(None)
        if loop is None:
            loop = object()
            _loop_mark.set(loop)
        if loop is self._loop:
            return direction
        self._loop = loop
        self._watch = _Watch()
        return self._restart_directions(direction)

    async def _wait(self, direction: Direction, take: Callable[[], Optional[T]]) -> T:
        direction = self._attach(direction)
        limit = self._get_int(direction.timeout)
        if limit < 0:
            return await self._take_turn(direction, take)
        with anyio.move_on_after(limit / 1000):
            return await self._take_turn(direction, take)
        name = "send" if direction.index else "recv"
        raise errors.timed_out(f"{name} on {errors.describe(self)}", name, limit, self)

    async def _take_turn(self, direction: Direction, take: Callable[[], Optional[T]]) -> T:
        queue: Deque[anyio.Event] = direction.queue
        turn_is_over = False
        if direction.busy:
            turn = anyio.Event()
            queue.append(turn)
            try:
                await turn.wait()
            except BaseException:
                if turn in queue:
                    queue.remove(turn)
                else:
                    self._leave(direction)
                raise
        else:
            direction.busy = True
            turn_is_over = self._begin_wait(direction.index)
        try:
            if turn_is_over:
                await anyio.lowlevel.checkpoint()
            while True:
                result = take()
                if result is not None:
                    return result
                await self._until_ready(direction.events)
        finally:
            self._leave(direction)

    def _give_way(self) -> Awaitable[None]:
        return anyio.lowlevel.checkpoint()

    def _leave(self, direction: Direction) -> None:
        """Gives the turn to the next task."""
        if direction.is_over:
            return
        if direction.queue:
            direction.queue.popleft().set()
        else:
            direction.busy = False
            self._end_wait(direction.index)

    async def _until_ready(self, events: int) -> None:
        """Waits until another try is worthwhile."""
        watch = self._watch
        for event in (1, 2):
            watch.waiting[event] += bool(events & event)
        try:
            await self._until_edge(watch)
        finally:
            for event in (1, 2):
                watch.waiting[event] -= bool(events & event)

    async def _until_edge(self, watch: _Watch) -> None:
        if self._readiness is None:
            try:
                self._readiness = _native.Readiness(self)
            except Exception as error:
                raise errors.convert(error, "wait", self) from None
        readiness = self._readiness
        events = sum(event for event, count in watch.waiting.items() if count)
        try:
            state = readiness.arm(events)
        except Exception as error:
            if errors.number_of(error) is None:
                # A signal handler has raised it.
                raise
            # The next try reports the error.
            state = _READY
        if state == _READY or state == _SOON:
            if state == _READY:
                watch.notify()
            await anyio.lowlevel.checkpoint()
            return
        if watch.edge is None:
            watch.edge = anyio.Event()
        if watch.is_watched:
            await watch.edge.wait()
            return
        watch.is_watched = True
        try:
            await anyio.wait_readable(readiness.fileno())
            readiness.clear()
        except anyio.ClosedResourceError:
            # The next try reports that the socket is closed.
            pass
        finally:
            watch.is_watched = False
            # One of the other tasks goes on watching.
            if watch is self._watch:
                watch.notify()

    async def _wait_for_events(self, flags: int, timeout: Optional[int]) -> int:
        self._attach(self._receiving)
        with anyio.move_on_after(None if timeout is None or timeout < 0 else timeout / 1000):
            while not self.events & flags:
                await self._until_ready(flags)
        return self.events & flags

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the socket. Tasks that wait for it end with SocketClosed. Call it in the thread of the event loop.

        `linger` replaces the option `linger`, in milliseconds. Queued messages are still sent in the background.
        """
        super().close(linger)
        if self._readiness is not None and self._watch.is_watched:
            anyio.notify_closing(self._readiness.fileno())
        self._watch.notify()


class Context(ContextBase[Socket]):
    """Container of asynchronous sockets with its I/O threads. A program needs one.

    `async with` closes its sockets at the end, and terminates it without blocking the event loop. It waits until the
    queued messages are sent, as long as `linger` allows. If an exception leaves the block, each open socket gets a
    `linger` of at most 1,000 ms, so the program shows the exception soon.
    """

    __slots__ = ()
    _socket_class = Socket

    def __enter__(self) -> Self:
        try:
            _loop_mark.get(None)
        except Exception:
            # No event loop runs.
            return super().__enter__()
        raise TypeError("`with` around a tautline_zmq.aio_anyio.Context blocks the event loop: write `async with`")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self.closed:
            self._close_sockets_after(kind)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.term)
