"""Events of a socket's connections, as typed objects."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Iterator, List, Optional, Sequence, Tuple

from tautline_zmq.constants import MonitorEvent

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

    from tautline_zmq.sockets import Socket, SocketBase

__all__ = ["Event", "Monitor", "parse"]


@dataclass(frozen=True)
class Event:
    """An event of a connection."""

    event: MonitorEvent
    """Kind of the event."""
    value: int
    """Meaning by kind: a descriptor, an error number, milliseconds until the reconnect (CONNECT_RETRIED), or the
    number of a protocol error."""
    local: str
    """Endpoint of this side; may be empty."""
    remote: str
    """Endpoint of the other side; may be empty."""
    routing_id: bytes = b""
    """Routing id of the peer, in HANDSHAKE_SUCCEEDED and DISCONNECTED."""
    address: str = ""
    """IP address of the peer, in HANDSHAKE_SUCCEEDED and DISCONNECTED."""
    user_id: str = ""
    """User id of the peer, in HANDSHAKE_SUCCEEDED and DISCONNECTED."""
    reason: str = ""
    """The cause in words; may be empty."""
    credentials: Tuple[bytes, ...] = field(default=(), repr=False)
    """After a failed handshake: the mechanism, the key or user name of the peer, and the handler's answer."""


def parse(parts: Sequence[bytes]) -> Event:
    """Returns the event of a message of a monitor, in the form of version 3. Raises ValueError for another form."""
    if len(parts) < 2 or len(parts[0]) != 8 or len(parts[1]) != 8:
        raise ValueError("not a message of a monitor")
    number = struct.unpack("=Q", parts[0])[0]
    count = struct.unpack("=Q", parts[1])[0]
    if len(parts) < 2 + count + 6:
        raise ValueError("the message of the monitor has too few parts")
    value = struct.unpack("=q", parts[2])[0] if count else 0
    rest = parts[2 + count :]
    text = [part.decode(errors="replace") for part in rest[:6]]
    return Event(
        event=MonitorEvent(number),
        value=value,
        local=text[0],
        remote=text[1],
        routing_id=rest[2],
        address=text[3],
        user_id=text[4],
        reason=text[5],
        credentials=tuple(rest[6:]),
    )


class Monitor:
    """The events of a socket, from `Socket.monitor`. Iterate over it, or call `next`. Close it with `close` or `with`.

    The iteration ends when the monitored socket is closed.
    """

    def __init__(self, socket: SocketBase, receiver: Socket) -> None:
        self._socket = socket
        self._receiver = receiver

    @property
    def receiver(self) -> Socket:
        """The PAIR socket with the events, for `Poller`. `parse(receiver.recv_multipart())` returns an event."""
        return self._receiver

    def next(self, timeout: Optional[int] = None) -> Optional[Event]:
        """Returns the next event. Returns `None` after `timeout` milliseconds, or if there are no more events.

        `timeout=None` waits without limit. Raises ContextTerminated.
        """
        if not self._receiver.poll(timeout):
            return None
        event = parse(self._receiver.recv_multipart())
        return None if event.event == MonitorEvent.MONITOR_STOPPED else event

    def drain(self) -> List[Event]:
        """Returns the events that have arrived, without waiting."""
        events: List[Event] = []
        while True:
            event = self.next(0)
            if event is None:
                return events
            events.append(event)

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self.next()
            if event is None:
                return
            yield event

    def close(self) -> None:
        """Stops the events. Has no effect on the monitored socket."""
        self._socket._stop_monitor()
        self._receiver.close(0)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
