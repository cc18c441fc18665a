"""Waits for a socket in an asyncio event loop, by the descriptor of `_native.Readiness`.

A `Watch` belongs to one socket and one loop, and registers one descriptor with the loop for as long as it lives. The tasks that
wait stand in the queues of zmq.asyncio (`_asyncio`).
"""

from tautline_zmq._native import Readiness

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
