"""Lets zmq.asyncio wait by the engine's descriptors in place of ZMQ_FD.

After a program has asked for ZMQ_FD, the socket writes this descriptor for every event, even if no task waits. Here, zmq.asyncio
does not ask for it. The queues of waiting calls stay those of pyzmq: `_state` contains the directions with waiting calls, and a
`Watch` is armed for them whenever pyzmq would look at ZMQ_EVENTS.

ZMQ_FD stays in use for some sockets: sockets made from another socket, which may wait in another thread, sockets that several
threads may use (SERVER, CLIENT and similar types), and classes that override internals of pyzmq.
"""

from collections import deque
from functools import wraps

from tautline_zmq import _native
from tautline_zmq.backend._readiness import Watch

# The arguments of the constructor that `__init__` replaces.
_ARGUMENTS = ("self", "context", "socket_type", "io_loop", "_from_socket")


def methods(cls, zmq, base, is_known):
    """Returns methods for zmq.asyncio.Socket, or an empty dict if pyzmq has another backend or other internals.

    `base` is the class that contains pyzmq's constructor. `is_known` returns False for a socket whose class overrides internals.
    """
    if not issubclass(zmq.Socket, _native.Socket):
        return {}
    code = base.__init__.__code__
    if code.co_varnames[: code.co_argcount] != _ARGUMENTS:
        return {}
    names = ("__init__", "_init_io_state", "_clear_io_state", "_schedule_remaining_events")
    slow_init, slow_init_io, slow_clear_io, slow_schedule = (getattr(cls, name) for name in names)

    # The first wait of a socket fills its attribute `_watch`. If the socket uses ZMQ_FD, the attribute is missing or False.

    def __init__(self, context=None, socket_type=-1, io_loop=None, _from_socket=None, **kwargs):
        is_own = _from_socket is None and io_loop is None and not kwargs.get("shadow") and not isinstance(context, zmq.Socket)
        if not is_own or not is_known(self):
            slow_init(self, context, socket_type, io_loop, _from_socket, **kwargs)
            return
        super(base, self).__init__(context, socket_type, **kwargs)
        self._shadow_sock = zmq.Socket.shadow(self.underlying)
        self._recv_futures = deque()
        self._send_futures = deque()
        self._state = 0
        # No descriptor yet.
        self._fd = -1
        self.__dict__["_watch"] = None

    def _init_io_state(self, io_loop=None):
        watch = self.__dict__.get("_watch", False)
        if watch is False:
            slow_init_io(self, io_loop)
            return
        loop = self._get_selector(io_loop)
        if watch:
            # The socket moves to another loop.
            watch.close()
        try:
            self.__dict__["_watch"] = Watch(self._shadow_sock, loop, lambda: on_ready(self))
        except (zmq.ZMQError, OSError):
            # There are no descriptors left.
            self.__dict__["_watch"] = False
            self._fd = self._shadow_sock.FD
            slow_init_io(self, io_loop)

    def _clear_io_state(self):
        watch = self.__dict__.get("_watch")
        if watch:
            self.__dict__["_watch"] = None
            self._current_loop = None
            watch.close()
        else:
            slow_clear_io(self)

    def _schedule_remaining_events(self, events=None):
        watch = self.__dict__.get("_watch")
        if not watch:
            slow_schedule(self, events)
        elif self._state and ((events or 0) & self._state or watch.arm(self._state)):
            watch.schedule()

    def on_ready(self):
        watch = self.__dict__.get("_watch")
        if not watch or self._shadow_sock.closed:
            return
        if not self._state:
            watch.stop()
        elif watch.arm(self._state):
            self._handle_events()

    made = (__init__, _init_io_state, _clear_io_state, _schedule_remaining_events)
    return {name: wraps(getattr(cls, name))(method) for name, method in zip(names, made)}
