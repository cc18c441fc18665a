"""Counters and peers of a socket. Reading them adds no work per message, and needs no monitor."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import List, Optional

from tautline_zmq import _native
from tautline_zmq.constants import Option, PeerState

__all__ = ["Peer", "Statistics", "peers", "statistics"]


@dataclass(frozen=True)
class Statistics:
    """Counters of a socket since it was made."""

    messages_sent: int
    """Messages put into the peers' queues."""
    bytes_sent: int
    """Bytes of these messages, including frame headers."""
    messages_received: int
    """Messages received by the program."""
    bytes_received: int
    """Bytes of these messages, including frame headers."""
    dropped_full: int
    """Messages dropped because a peer was at its high-water mark (PUB, XPUB, RADIO, ROUTER)."""
    dropped_unroutable: int
    """Messages dropped because no peer has that routing id (ROUTER)."""
    lost: int
    """Messages that were queued for peers that are gone for good."""
    queued_out: int
    """Messages that wait to be sent now."""
    queued_in: int
    """Messages that wait for the program now."""
    peers: int
    """Peers that are connected or being connected to now."""
    reconnects: int
    """Reconnects of peers."""
    failed_connects: int
    """Failed connect attempts."""
    failed_handshakes: int
    """Handshakes that the peer aborted or that were refused."""
    topics_refused: int
    """Subscriptions and messages of peers that may not use the topic."""


@dataclass(frozen=True)
class Peer:
    """A peer of a socket, with its counters."""

    id: int
    """Identifies the peer within the socket while the peer exists."""
    since: Optional[datetime]
    """Start of the current connection. `None` before the first one, and for inproc."""
    messages_sent: int
    """Messages put into the peer's queue."""
    bytes_sent: int
    """Bytes of these messages, including frame headers."""
    messages_received: int
    """Messages received from the peer."""
    bytes_received: int
    """Bytes of these messages, including frame headers."""
    queued_out: int
    """Messages that wait to be sent to the peer."""
    queued_out_bytes: int
    """Bytes of these messages."""
    queued_in: int
    """Messages of the peer that the program has not received yet."""
    queued_in_bytes: int
    """Bytes of these messages."""
    dropped: int
    """Messages dropped because the peer was at its high-water mark."""
    full: int
    """Number of messages that found the peer's queue full."""
    reconnects: int
    """Number of reconnects."""
    round_trip: Optional[timedelta]
    """Round-trip time of the last heartbeat. `None` without heartbeats."""
    state: PeerState
    """State of the connection."""
    connected_here: bool
    """True if this socket connected to the peer, false if the peer connected to this socket."""
    shared_memory: bool
    """True if bytes go through shared memory."""
    routing_id: bytes
    """Routing id by which ROUTER and other sockets know the peer."""
    address: str
    """The peer's end of the connection. Empty for inproc."""
    local: str
    """Our end of the connection."""
    endpoint: str
    """Endpoint that was bound or connected on this side."""
    user_id: str
    """User id that the authentication gave the peer."""
    host: str
    """IP address of the peer."""
    mechanism: str
    """NULL, PLAIN or CURVE. Empty for inproc."""


_COUNTERS = 14
_PEER = struct.Struct("=14Q4I256s128s128s256s192s64s16s")
_SHARED_MEMORY = 2
_CONNECTED_HERE = 1


def statistics(socket: _native.NativeSocket) -> Statistics:
    """Returns the counters of a socket."""
    value = socket._get_bytes(Option.TAUTLINE_STATISTICS, 8 * _COUNTERS)
    return Statistics(*struct.unpack(f"={_COUNTERS}Q", value))


def peers(socket: _native.NativeSocket) -> List[Peer]:
    """Returns the peers of a socket, also those that it still connects to."""
    # Peers may come between the two calls.
    room = statistics(socket).peers + 8
    while True:
        value = socket._get_bytes(Option.TAUTLINE_PEERS, room * _PEER.size)
        if len(value) < room * _PEER.size:
            break
        room *= 2
    return [_peer(value, at) for at in range(0, len(value), _PEER.size)]


def is_connected(socket: _native.NativeSocket, room: int) -> bool:
    """True if one of the first `room` peers of a socket is connected."""
    value = socket._get_bytes(Option.TAUTLINE_PEERS, room * _PEER.size)
    return any(_PEER.unpack_from(value, at)[14] == PeerState.CONNECTED for at in range(0, len(value), _PEER.size))


def _peer(value: bytes, at: int) -> Peer:
    fields = _PEER.unpack_from(value, at)
    since, round_trip, flags = fields[1], fields[13], fields[15]
    address, local, endpoint, user_id, host, mechanism = map(_text, fields[19:])
    return Peer(
        id=fields[0],
        since=datetime.fromtimestamp(since / 1e6, timezone.utc) if since else None,
        messages_sent=fields[2],
        bytes_sent=fields[3],
        messages_received=fields[4],
        bytes_received=fields[5],
        queued_out=fields[6],
        queued_out_bytes=fields[7],
        queued_in=fields[8],
        queued_in_bytes=fields[9],
        dropped=fields[10],
        full=fields[11],
        reconnects=fields[12],
        round_trip=timedelta(microseconds=round_trip) if round_trip else None,
        state=PeerState(fields[14]),
        connected_here=bool(flags & _CONNECTED_HERE),
        shared_memory=bool(flags & _SHARED_MEMORY),
        routing_id=fields[18][: fields[16]],
        address=address,
        local=local,
        endpoint=endpoint,
        user_id=user_id,
        host=host,
        mechanism=mechanism,
    )


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")
