"""The base class of `zmq.Context`, with a `destroy` that ends waiting calls."""

from functools import wraps
from warnings import warn

from tautline_zmq import _native
from tautline_zmq.backend._socket import arguments_of


class Context(_native.Context):
    __slots__ = ()

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if (cls.__module__, cls.__qualname__) == ("zmq.sugar.context", "Context") and arguments_of(
            cls.destroy
        ) == ("self", "linger"):
            cls.destroy = wraps(cls.destroy)(_destroy)


def _destroy(self, linger=None):
    """Closes the sockets of a context, and terminates it.

    pyzmq's method sets ZMQ_LINGER before it closes a socket. If another thread waits in a call on the socket, the option is set only
    after that call. `close(linger)` ends the waiting call instead.
    """
    if self.closed:
        return
    for socket in list(getattr(self, "_sockets", None) or ()):
        if socket.closed:
            continue
        # At the exit of the interpreter, the function may be gone.
        if self._warn_destroy_close and warn is not None:
            warn(f"Destroying context with unclosed socket {socket}", ResourceWarning, stacklevel=3, source=socket)
        if linger is None:
            socket.close()
        elif "linger" in (arguments_of(type(socket).close) or ()):
            socket.close(linger=linger)
        else:
            # A subclass overrides the method with other arguments.
            socket.linger = linger
            socket.close()
    self.term()
