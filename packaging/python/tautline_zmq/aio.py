"""Contexts and sockets for asyncio, also with uvloop.

```python
async with Context() as context, context.socket(PULL) as socket:
    socket.bind("tcp://127.0.0.1:5555")
    async for message in socket:
        ...
```
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, List, Optional, Tuple, TypeVar, Union

from tautline_zmq import _native, errors
from tautline_zmq._async import AsyncMonitor, AsyncSocket, Direction
from tautline_zmq._spin import LoopSpin
from tautline_zmq.constants import POLLIN, SocketType
from tautline_zmq.sockets import ContextBase

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncMonitor", "Context", "Socket"]

T = TypeVar("T")

_READY = _native.Readiness.READY
_SOON = _native.Readiness.SOON

# Waits in a row that end at once, before a task gives way.
_TURN = 64


def _be_ready(*_events: int) -> int:
    """Stands for the methods of the descriptor after the socket was closed: the next try reports the error."""
    return _READY


class Socket(AsyncSocket):
    """A socket for asyncio. It belongs to the event loop of the first call that waits.

    See the methods of the base class. Several tasks may receive, and several may send: they get their turn in the order
    of their calls. A cancelled receive takes no message, and a cancelled send sends none.
    """

    __slots__ = ("_arm", "_clear", "_loop", "_pollers", "_readiness", "_soon", "_spin")

    def __init__(self, context: Any, socket_type: Union[SocketType, int]) -> None:
        super().__init__(context, socket_type)
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._readiness: Optional[_native.Readiness] = None
        self._pollers: List[Tuple[int, asyncio.Future[None]]] = []
        self._soon = False
        self._spin: Optional[LoopSpin] = None

    def _attach(self, loop: asyncio.AbstractEventLoop, direction: Direction) -> Direction:
        """Lets a loop watch the socket from now on. Returns the new object for a direction."""
        if self._loop is not None and not self._loop.is_closed():
            if self._receiving.busy or self._sending.busy or self._pollers:
                raise RuntimeError("the socket is in use in another event loop")
            self._detach()
        direction = self._restart_directions(direction)
        self._pollers.clear()
        self._soon = False
        if self._readiness is None:
            try:
                self._readiness = _native.Readiness(self)
            except Exception as error:
                raise errors.convert(error, "wait", self) from None
            self._arm = self._readiness.arm
            self._clear = self._readiness.clear
        loop.add_reader(self._readiness.fileno(), self._on_edge)
        self._loop = loop
        self._spin = LoopSpin(loop)
        return direction

    def _detach(self) -> None:
        if self._loop is not None and self._readiness is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._readiness.fileno())
        self._loop = None

    async def _wait(self, direction: Direction, take: Callable[[], Optional[T]]) -> T:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            direction = self._attach(loop, direction)
        limit = self._get_int(direction.timeout)
        if limit and not (direction.busy or direction.index):
            result = self._spin_for_message(take)
            if result is not None:
                return result
        timer = None if limit < 0 else _Timer(loop, limit)
        try:
            tries = 0
            if direction.busy:
                if timer is not None and timer.is_over():
                    raise self._timed_out(direction, limit)
                await self._line_up(direction, loop, timer)
                tries = 1
            else:
                direction.busy = True
            try:
                if not tries and self._begin_wait(direction.index):
                    await asyncio.sleep(0)
                    tries = 1
                while True:
                    # The caller has made the first try.
                    if tries:
                        result = take()
                        if result is not None:
                            return result
                        if tries % _TURN == 0:
                            await asyncio.sleep(0)
                    if timer is not None and timer.is_over():
                        raise self._timed_out(direction, limit)
                    tries += 1
                    await self._until_ready(direction, loop, timer)
            finally:
                self._leave(direction)
        except _Expired:
            raise self._timed_out(direction, limit) from None
        finally:
            if timer is not None:
                timer.cancel()

    def _spin_for_message(self, take: Callable[[], Optional[T]]) -> Optional[T]:
        """Takes the message of the only task that waits, if it arrives while the event loop has nothing else to do.

        After a turn of many calls, other tasks and timers run first.
        """
        if self._spin is None or not self._spin.is_alone() or self._sending.ready is not None or self._pollers:
            return None
        if self._is_turn_over(0):
            return None
        try:
            state = self._spin.run(self._arm, POLLIN)
        except Exception as error:
            if errors.number_of(error) is None:
                # A signal handler has raised it.
                raise
            # The next try reports the error.
            return None
        return take() if state == _READY else None

    def _give_way(self) -> Awaitable[None]:
        return asyncio.sleep(0)

    def _timed_out(self, direction: Direction, limit: int) -> errors.Error:
        name = "send" if direction.index else "recv"
        return errors.timed_out(f"{name} on {errors.describe(self)}", name, limit, self)

    async def _line_up(self, direction: Direction, loop: asyncio.AbstractEventLoop, timer: Optional[_Timer]) -> None:
        """Waits until the tasks that came earlier have had their turn."""
        turn = loop.create_future()
        direction.queue.append(turn)
        if timer is not None:
            timer.future = turn
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave(direction)
            elif turn in direction.queue:
                direction.queue.remove(turn)
            raise

    def _leave(self, direction: Direction) -> None:
        """Gives the turn to the next task."""
        if direction.is_over:
            return
        while direction.queue:
            turn = direction.queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        direction.busy = False
        self._end_wait(direction.index)

    async def _until_ready(self, direction: Direction, loop: asyncio.AbstractEventLoop, timer: Optional[_Timer]) -> None:
        """Waits until another try is worthwhile."""
        events = direction.events
        if direction.other.ready is not None or self._pollers:
            events |= self._awaited()
        try:
            state = self._arm(events)
        except Exception as error:
            if errors.number_of(error) is None:
                # A signal handler has raised it.
                raise
            # The next try reports the error.
            return
        if state == _READY:
            self._wake()
            return
        if state == _SOON:
            self._check_soon(loop)
        future = direction.ready = loop.create_future()
        if timer is not None:
            timer.future = future
        try:
            await future
        except BaseException:
            direction.ready = None
            if not direction.is_over and not self._awaited() and self._readiness is not None and not self.closed:
                self._readiness.stop()
            raise
        direction.ready = None

    def _awaited(self) -> int:
        """Returns the events that tasks wait for."""
        events = 0
        ready = self._receiving.ready
        if ready is not None and not ready.done():
            events = self._receiving.events
        ready = self._sending.ready
        if ready is not None and not ready.done():
            events |= self._sending.events
        for flags, _ in self._pollers:
            events |= flags
        return events

    def _wake(self) -> None:
        """Lets all tasks try again that have the turn."""
        ready = self._receiving.ready
        if ready is not None and not ready.done():
            ready.set_result(None)
        ready = self._sending.ready
        if ready is not None and not ready.done():
            ready.set_result(None)
        if self._pollers:
            for _, future in self._pollers:
                if not future.done():
                    future.set_result(None)
            self._pollers.clear()

    def _on_edge(self) -> None:
        try:
            self._clear()
        finally:
            # An exception of a signal handler must not take the edge with it.
            self._check()

    def _check(self) -> None:
        events = self._awaited()
        if not events:
            return
        try:
            state = self._arm(events)
        except BaseException as error:
            # Each task meets an error of the socket in its next try.
            state = _READY
            if errors.number_of(error) is None:
                # A signal handler has raised it. The tasks arm the descriptor again.
                self._wake()
                raise
        if state == _READY:
            self._wake()
        elif state == _SOON and self._loop is not None:
            self._check_soon(self._loop)

    def _check_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Checks again in the next turn of the loop, because the engine spins for a moment."""
        if not self._soon:
            self._soon = True
            loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._soon = False
        self._check()

    async def _wait_for_events(self, flags: int, timeout: Optional[int]) -> int:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._attach(loop, self._receiving)
        timer = None if timeout is None or timeout < 0 else _Timer(loop, timeout)
        try:
            while timer is None or not timer.is_over():
                future: asyncio.Future[None] = loop.create_future()
                entry = (flags, future)
                self._pollers.append(entry)
                self._check()
                if timer is not None:
                    timer.future = future
                try:
                    await future
                finally:
                    if entry in self._pollers:
                        self._pollers.remove(entry)
                ready = self.events & flags
                if ready:
                    return ready
                # The timer may end during this turn of the loop.
                await asyncio.sleep(0)
            return self.events & flags
        except _Expired:
            return self.events & flags
        finally:
            if timer is not None:
                timer.cancel()

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the socket. Tasks that wait for it end with SocketClosed. Call it in the thread of the event loop.

        `linger` replaces the option `linger`, in milliseconds. Queued messages are still sent in the background.
        """
        if self._loop is not None:
            self._detach()
        super().close(linger)
        self._wake()
        for direction in (self._receiving, self._sending):
            while direction.queue:
                turn = direction.queue.popleft()
                if not turn.done():
                    turn.set_result(None)
        if self._readiness is not None:
            # Releases the descriptors.
            self._readiness = None
            self._arm = self._clear = _be_ready


class _Expired(Exception):
    """The timer of a wait has ended it."""


class _Timer:
    """The time limit of a wait."""

    __slots__ = ("_handle", "_over", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop, milliseconds: int) -> None:
        self.future: Optional[asyncio.Future[None]] = None
        self._over = milliseconds == 0
        self._handle = None if self._over else loop.call_later(milliseconds / 1000, self._expire)

    def _expire(self) -> None:
        self._over = True
        if self.future is not None and not self.future.done():
            self.future.set_exception(_Expired())

    def is_over(self) -> bool:
        return self._over

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class Context(ContextBase[Socket]):
    """Container of asynchronous sockets with its I/O threads. A program needs one.

    `async with` closes its sockets at the end, and terminates it without blocking the event loop. It waits until the
    queued messages are sent, as long as `linger` allows. If an exception leaves the block, each open socket gets a
    `linger` of at most 1,000 ms, so the program shows the exception soon.
    """

    __slots__ = ()
    _socket_class = Socket

    def __enter__(self) -> Self:
        if asyncio._get_running_loop() is not None:
            raise TypeError("`with` around a tautline_zmq.aio.Context blocks the event loop: write `async with`")
        return super().__enter__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self.closed:
            self._close_sockets_after(kind)
            await asyncio.get_running_loop().run_in_executor(None, self.term)

