"""Tautline as a backend of pyzmq, in place of pyzmq's own extension module.

`PYZMQ_BACKEND=tautline_zmq.backend` selects it: `import zmq` then uses the names of this module for its base classes and
functions. Programs that use pyzmq's C interface (`cimport zmq`) need pyzmq's own backend.
"""

from tautline_zmq import _native
from tautline_zmq._native import (
    IPC_PATH_MAX_LEN,
    curve_keypair,
    curve_public,
    has,
    proxy,
    proxy_steerable,
    strerror,
    zmq_errno,
    zmq_poll,
    zmq_version_info,
)
from tautline_zmq.backend._classes import Context, Frame
from tautline_zmq.backend._monitored_queue import monitored_queue
from tautline_zmq.backend._socket import Socket

Message = Frame

# The draft socket types (CLIENT, SERVER, RADIO, DISH and others) are always there.
PYZMQ_DRAFT_API = True


def device(device_type, frontend, backend):
    """Forwards messages between two sockets, until the context is terminated. pyzmq 25 imports this older name of `proxy`."""
    return proxy(frontend, backend)


def loan(size):
    """Returns a `zmq.Frame` of `size` bytes for the program to fill; see `tautline_zmq.loan`."""
    import zmq

    if not issubclass(zmq.Frame, _native.Frame):
        raise RuntimeError("pyzmq does not run on the native backend: set PYZMQ_BACKEND=tautline_zmq.backend")
    return _native.loan(zmq.Frame, size)


__all__ = [
    "IPC_PATH_MAX_LEN",
    "PYZMQ_DRAFT_API",
    "Context",
    "Frame",
    "Message",
    "Socket",
    "curve_keypair",
    "curve_public",
    "device",
    "has",
    "loan",
    "monitored_queue",
    "proxy",
    "proxy_steerable",
    "strerror",
    "zmq_errno",
    "zmq_poll",
    "zmq_version_info",
]
