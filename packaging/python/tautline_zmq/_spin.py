"""Spins for a socket in an asyncio event loop that has nothing else to do.

A turn of the event loop takes longer than a message over tcp. A task that waits for a message therefore spins before it gives
way, by the engine's wait rule. Both APIs use this: `aio` and the backend of pyzmq.
"""

from __future__ import annotations

import select
from collections import deque
from typing import Any, Callable

from tautline_zmq._native import Readiness

_SOON = Readiness.SOON


class LoopSpin:
    """The spins of one socket in one event loop."""

    __slots__ = ("_calls", "_poll")

    def __init__(self, loop: Any) -> None:
        # The calls that the loop makes in this turn or the next one, and a function that returns the ready descriptors of the loop.
        # Other loops, such as uvloop, do not show them.
        self._calls: Any = getattr(loop, "_ready", None)
        descriptor = getattr(getattr(loop, "_selector", None), "fileno", None)
        if isinstance(self._calls, deque) and descriptor:
            poll = select.poll()
            poll.register(descriptor(), select.POLLIN)
            self._poll = poll.poll
        else:
            self._calls = None

    def is_alone(self, own: int = 0) -> bool:
        """True if the loop has no other calls to make. `own` is the number of calls that need not be made soon."""
        return self._calls is not None and len(self._calls) <= own

    def run(self, arm: Callable[[int], int], events: int) -> int:
        """Arms until the loop has an event, or the engine's wait rule ends the spin.

        Returns the last result of `arm`. SOON means that the loop has an event, which may belong to this socket.
        """
        # Each poll also releases the interpreter lock.
        while not self._poll(0):
            state = arm(events)
            if state != _SOON:
                return state
        return _SOON
