"""`monitored_queue`: forwards messages between two sockets, and reports each of them with a prefix.

pyzmq 26 and newer take the function from the backend. pyzmq 25 has it in an extension module, `zmq.devices.monitoredqueue`, which
accepts only sockets of pyzmq's own backend. In pyzmq 25, this module therefore takes the place of the extension.
"""

import sys

from tautline_zmq import _native

__all__ = ["monitored_queue"]


def monitored_queue(in_socket, out_socket, mon_socket, in_prefix=b"in", out_prefix=b"out"):
    """Forwards messages in both directions, until the context is terminated or a socket is closed.

    `mon_socket` sends a copy of each message after a first part: `in_prefix` if the message came from `in_socket`, `out_prefix` if it
    came from `out_socket`. If both sockets are ROUTERs, the first two parts of a message change places: the id of the sender and the
    id of the receiver.
    """
    import zmq

    for prefix in (in_prefix, out_prefix):
        if not isinstance(prefix, bytes):
            raise TypeError(f"expected bytes as a prefix, got: {prefix!r}")
    front, back, monitor = (_without_subclass(socket) for socket in (in_socket, out_socket, mon_socket))
    swaps = front.get(zmq.TYPE) == back.get(zmq.TYPE) == zmq.ROUTER
    # The target and the prefix of each source.
    directions = {front: (back, in_prefix), back: (front, out_prefix)}
    sources = [(source, int(zmq.POLLIN)) for source in directions]
    while True:
        for source, _ in _native.zmq_poll(sources):
            target, prefix = directions[source]
            try:
                parts = source.recv_multipart(int(zmq.DONTWAIT), copy=False)
            except zmq.Again:
                # Another thread has received the message, or one socket is both ends.
                continue
            if swaps:
                parts[:2] = reversed(parts[:2])
            target.send_multipart(parts)
            monitor.send_multipart([prefix, *parts])


def replace_extension():
    """Makes `import zmq.devices.monitoredqueue` return this module."""
    sys.modules["zmq.devices.monitoredqueue"] = sys.modules[__name__]


def _without_subclass(socket):
    """Returns an object of the base class for a socket. Subclasses such as zmq.asyncio.Socket have other methods."""
    if not isinstance(socket, _native.Socket):
        raise TypeError(f"expected a socket of the backend, got: {socket!r}")
    # A closed socket has the address 0.
    return _native.Socket(shadow=socket.underlying or 1)
