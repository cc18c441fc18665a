"""Waits for a socket in an asyncio event loop, by the descriptor of `_native.Readiness`.

A `Watch` belongs to one socket and one loop, and registers one descriptor with the loop for as long as it lives. The tasks that
wait stand in the queues of zmq.asyncio (`_asyncio`).
"""

from tautline_zmq._native import Readiness
from tautline_zmq._spin import LoopSpin

_READY = Readiness.READY
_SOON = Readiness.SOON


class Watch(LoopSpin):
    """The descriptor of one socket in one event loop.

    The loop calls `ready` when the program should try its operation again, and then `arm`.
    """

    __slots__ = ("_loop", "_ready", "_readiness", "_soon")

    def __init__(self, socket, loop, ready):
        super().__init__(loop)
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

    def is_alone(self, own=0):
        """True if the loop has no other calls to make, except `own` calls that need not be made soon."""
        return self._calls is not None and len(self._calls) <= own + (self._soon is not None)

    def spin(self, events):
        """Spins until the loop has an event, or the engine's wait rule ends the spin.

        Returns true if the program should try again now. Otherwise, the loop will call `ready`.
        """
        state = self.run(self._readiness.arm, events)
        if state == _SOON:
            # The loop may have an event of this socket.
            return self._soon is not None or self.arm(events)
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
