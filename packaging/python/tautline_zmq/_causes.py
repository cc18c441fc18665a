"""Causes of errors, for their texts. Each function runs only when an exception is made."""

from __future__ import annotations

import os
import struct
from typing import Any, Optional

_TYPE = 16
_SUB = 2
_TOPICS_COUNT = 116
_FORM = "An endpoint looks like tcp://127.0.0.1:5555, ipc:///tmp/name or inproc://name"
# Peers whose state is read for the text of an error.
_FEW_PEERS = 16


def is_foreign(owner: Any) -> bool:
    """True if a context, or the context of a socket, belongs to the parent of this forked process."""
    try:
        pid = getattr(owner, "_pid", None)
        if pid is None:
            pid = getattr(owner.context, "_pid", None)
    except Exception:
        return False
    return pid is not None and pid != os.getpid()


def malformed(endpoint: str, binds: bool) -> str:
    """Returns the reason why an endpoint is refused as an invalid argument, or an empty text."""
    transport, found, address = endpoint.partition("://")
    if not found or not transport:
        return f"no transport. {_FORM}"
    if not address:
        return f"no address. {_FORM}"
    if transport in ("tcp", "tls+tcp"):
        # A connect may name a source address before the semicolon.
        host, colon, port = address.rpartition(";")[2].rpartition(":")
        if not colon or not host:
            return f"no port. {_FORM}"
        if port == "*" and not binds:
            return "the port `*` is only for bind. Use the port that bind has returned"
        if port != "*":
            if not (port.isascii() and port.isdigit()):
                return f"the port {port!r} is not a number. {_FORM}"
            if int(port) > 65535:
                return "a port is at most 65535"
        if host == "*" and not binds:
            return "the host `*` is only for bind. Name the host to connect to"
    return _FORM if transport in ("tcp", "ipc", "inproc") else ""


def missing_folder(endpoint: str) -> Optional[str]:
    """Returns the folder of an `ipc` endpoint if it does not exist."""
    transport, _, path = endpoint.partition("://")
    folder = os.path.dirname(path) or "."
    return folder if transport == "ipc" and not path.startswith("@") and not os.path.isdir(folder) else None


def of_timeout(socket: Any) -> str:
    """Returns the likely cause of a timeout by the state of the socket, or an empty text."""
    from tautline_zmq import peers

    try:
        if socket._get_int(_TYPE) == _SUB and not socket._get_int(_TOPICS_COUNT):
            return "the socket has no subscription"
        statistics = peers.statistics(socket)
        if statistics.peers > _FEW_PEERS or peers.is_connected(socket, _FEW_PEERS):
            return ""
    except (OSError, struct.error):
        return ""
    failed = statistics.failed_handshakes
    return f"no peer is connected, {failed} failed handshakes (see `monitor`)" if failed else "no peer is connected"
