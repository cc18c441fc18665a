"""Shared parts of `replay`, `topics` and `access`: errors, options, closing, and receiving for asyncio."""

from __future__ import annotations

import asyncio
import errno
import os
import struct
import sys
import threading
import warnings
from collections import deque
from typing import Any, Callable, Deque, Generic, List, Mapping, Optional, Tuple, TypeVar, Union

from tautline_zmq import errors
from tautline_zmq._options import Options, _Int64  # pyright: ignore[reportPrivateUsage]
from tautline_zmq.constants import Option
from tautline_zmq.sockets import ClosedByWith, Context, ContextBase

T = TypeVar("T")

OptionValue = Union[int, bytes, str]
SocketOptions = Mapping[int, OptionValue]

# Options of eight bytes.
_LONG = {row.number for row in vars(Options).values() if isinstance(row, _Int64)}
# Items that one call of the helper thread takes at most.
_BATCH = 64


def made(number: int, text: str) -> errors.Error:
    """Returns the exception for an error of the engine. The native module calls it."""
    kind = type(errors.made(number, ""))
    return kind(number, text)


def closed(place: str) -> errors.Error:
    """Returns the exception for an object that is closed."""
    return made(errno.ENOTSOCK, f"{place}: it is closed")


def named(error: errors.Error, place: str) -> errors.Error:
    """Returns the exception with the method and its object before the reason."""
    return made(error.errno or 0, f"{place}: {error.strerror}")


def encoded(options: Optional[SocketOptions]) -> List[Tuple[int, bytes]]:
    """Returns options in the form of zmq_setsockopt(3)."""
    return [(int(number), _encoded(number, value)) for number, value in (options or {}).items()]


def _encoded(number: int, value: OptionValue) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int):
        try:
            return struct.pack("=q" if number in _LONG else "=i", value)
        except struct.error:
            raise ValueError(f"the option {number} does not take the value {value}") from None
    return bytes(value)


def context_of(context: Optional[ContextBase[Any]]) -> ContextBase[Any]:
    """Returns the given context, or else the one that the whole process shares."""
    return Context.instance() if context is None else context


class Closing(ClosedByWith):
    """Closing by `close`, by `with`, and with the context."""

    def __init__(self, context: ContextBase[Any], options: Optional[SocketOptions] = None) -> None:
        self._context = context
        linger = (options or {}).get(Option.LINGER)
        self._linger = linger if isinstance(linger, int) else -1 if context.blocky else 0
        # `destroy` of the context closes it like a socket.
        context._sockets.add(self)

    @property
    def closed(self) -> bool:
        """True after `close`, and in a forked child of the process that made the object."""
        raise NotImplementedError

    def __del__(self, warn: Any = warnings.warn, is_finalizing: Any = sys.is_finalizing) -> None:
        # `_context` is missing if the constructor has failed.
        if is_finalizing() or not hasattr(self, "_context") or self._context._pid != os.getpid() or self.closed:
            return
        warn(f"unclosed {self!r}", ResourceWarning, source=self)
        self.close()


class _Failure:
    """An exception that the helper thread has met."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Receiver(Generic[T]):
    """Receives for tasks of asyncio, in a helper thread that blocks in their place.

    The thread receives only if a task waits. It puts the items into a queue, from which the tasks take them. So a
    cancelled task loses no item: the next task gets it.
    """

    def __init__(self, name: str, receive: Callable[[int], List[T]], is_closed: Callable[[], bool]) -> None:
        self._name = name
        self._receive = receive
        self._is_closed = is_closed
        self._items: Deque[Union[T, _Failure]] = deque()
        self._waiters: Deque[asyncio.Future[None]] = deque()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._requests = threading.Semaphore(0)
        self._requested = False
        self._started = False
        self._stopped = False

    async def next(self, timeout: Optional[int], place: str) -> T:
        """Returns the next item. Raises TimedOut after `timeout` milliseconds; `None` waits without limit."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None or timeout < 0 else loop.time() + timeout / 1000
        while True:
            if self._items:
                item = self._items.popleft()
                if self._items:
                    self._wake()
                elif self._waiters and not self._stopped:
                    self._request()
                if isinstance(item, _Failure):
                    raise item.error
                return item
            if self._is_closed():
                raise closed(place)
            self._loop = loop
            self._request()
            await self._wait(loop, deadline, timeout, place)

    async def _wait(
        self, loop: asyncio.AbstractEventLoop, deadline: Optional[float], timeout: Optional[int], place: str
    ) -> None:
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        # The thread may have put an item before it saw this waiter.
        if self._items:
            self._wake()
        try:
            await asyncio.wait((waiter,), timeout=None if deadline is None else max(0.0, deadline - loop.time()))
        except BaseException:
            if waiter.done():
                self._wake()
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if not waiter.done():
            raise errors.timed_out(place, "recv", timeout or 0)

    def _request(self) -> None:
        if self._requested:
            return
        if not self._started:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
            self._started = True
        self._requested = True
        self._requests.release()

    def _wake(self) -> None:
        """Wakes the first waiting task; after `stop`, all of them."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)
                if not self._stopped:
                    return

    def _run(self) -> None:
        """Serves requests until `stop`. Runs in the helper thread."""
        while True:
            self._requests.acquire()
            if self._stopped:
                return
            try:
                self._items.extend(self._receive(_BATCH))
            except BaseException as error:
                self._items.append(_Failure(error))
            self._requested = False
            loop = self._loop
            try:
                if loop is not None:
                    loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                # The loop is closed. The items wait for a task of another loop.
                pass

    def stop(self) -> None:
        """Ends the helper thread, and wakes the waiting tasks. Call it after closing the object."""
        self._stopped = True
        self._requests.release()
        if not self._requested:
            self._wake()
