"""Waits for a socket in an asyncio event loop, by the descriptor of `_native.Readiness`.

A `Watch` belongs to one socket and one loop, and registers one descriptor with the loop for as long as it lives. zmq.asyncio has
queues of its own and uses a Watch alone (`_asyncio`). A `Waiter` adds queues: any number of tasks may wait for the socket. They are
served in the order in which they came, separately for the two directions.
"""

import asyncio
from collections import deque

from tautline_zmq._native import Readiness

POLLIN = 1
POLLOUT = 2

_READY = Readiness.READY
_SOON = Readiness.SOON


class Watch:
    """The descriptor of one socket in one event loop.

    The loop calls `ready` when the program should try its operation again, and then `arm`.
    """

    __slots__ = ("_loop", "_ready", "_readiness", "_soon")

    def __init__(self, socket, loop, ready):
        self._readiness = Readiness(socket)
        self._loop = loop
        self._ready = ready
        self._soon = None
        loop.add_reader(self._readiness.fileno(), self._on_event)

    def arm(self, events):
        """Waits for POLLIN or POLLOUT, or both. Returns true if the program should try again now."""
        state = self._readiness.arm(events)
        if state == _SOON:
            self.schedule()
        return state == _READY

    def schedule(self):
        """Calls `ready` in the next turn of the loop."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self._on_turn)

    def stop(self):
        """Ends a wait that no task continues."""
        self._readiness.stop()

    def close(self):
        """Takes the descriptor out of the loop. The socket stays open."""
        if not self._loop.is_closed():
            self._loop.remove_reader(self._readiness.fileno())
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        self.stop()

    def _on_event(self):
        self._readiness.clear()
        # At most one call in each turn: the task that the first call completes may cancel the next one.
        if self._soon is None:
            self._ready()

    def _on_turn(self):
        self._soon = None
        self._ready()


class Waiter:
    """The tasks of one event loop that wait for one socket."""

    def __init__(self, socket, loop=None):
        self._loop = loop or asyncio.get_running_loop()
        # The futures of each direction: an attempt to complete the operation, and the future of its result.
        self._readers = deque()
        self._writers = deque()
        self._watch = Watch(socket, self._loop, self._continue)

    def wait(self, events, attempt):
        """Returns a future with the result of `attempt`, an operation that needs POLLIN or POLLOUT.

        `attempt()` returns a pair: false and nothing if the operation would block, or else true and the result. It has just
        failed, or other tasks wait for the same direction.
        """
        future = self._loop.create_future()
        (self._readers if events == POLLIN else self._writers).append((attempt, future))
        # The wait for the other direction goes on, because arm waits for both.
        self._continue()
        return future

    def close(self):
        """Ends all waits, and takes the descriptor out of the loop. The socket stays open."""
        for waiting in (self._readers, self._writers):
            while waiting:
                waiting.popleft()[1].cancel()
        self._watch.close()

    def _continue(self):
        """Serves the waiting tasks until the socket blocks in both directions, and then arms the descriptor."""
        while True:
            events = (POLLIN if _serve(self._readers) else 0) | (POLLOUT if _serve(self._writers) else 0)
            if not events:
                return
            try:
                if not self._watch.arm(events):
                    return
            except Exception as error:
                _fail(self._readers, error)
                _fail(self._writers, error)
                return


def _serve(waiting):
    """Completes the operations that do not block. Returns true if one is left."""
    while waiting:
        attempt, future = waiting[0]
        if not future.done():
            try:
                is_done, result = attempt()
            except Exception as error:
                future.set_exception(error)
            else:
                if not is_done:
                    return True
                future.set_result(result)
        waiting.popleft()
    return False


def _fail(waiting, error):
    while waiting:
        future = waiting.popleft()[1]
        if not future.done():
            future.set_exception(error)
