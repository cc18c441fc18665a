"""The base classes of `zmq.Frame` and `zmq.Context`, and what pyzmq 25 needs in addition.

pyzmq defines its classes on top of these. `__init_subclass__` then completes the new class.
"""

from functools import wraps
from warnings import warn

from tautline_zmq import _native
from tautline_zmq.backend import _monitored_queue
from tautline_zmq.backend._socket import arguments_of


class Frame(_native.Frame):
    __slots__ = ()

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if (cls.__module__, cls.__qualname__) == ("zmq.sugar.frame", "Frame") and _is_old():
            cls.__str__ = _text


class Context(_native.Context):
    __slots__ = ()

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if (cls.__module__, cls.__qualname__) != ("zmq.sugar.context", "Context"):
            return
        if arguments_of(cls.destroy) == ("self", "linger"):
            cls.destroy = wraps(cls.destroy)(_destroy)
        if _is_old():
            _monitored_queue.replace_extension()


def _is_old():
    """Returns True for pyzmq 25 and older, which have parts of their interface only in extension modules."""
    from zmq.sugar.version import VERSION_MAJOR

    return VERSION_MAJOR < 26


def _text(frame):
    """Returns the body as UTF-8 text. In pyzmq 25, this is `str(frame)`."""
    return frame.bytes.decode()


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
