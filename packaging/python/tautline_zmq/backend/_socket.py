"""The base class of `zmq.Socket`, with native methods in place of those that pyzmq adds in Python.

`zmq.Socket` wraps `send` of its base class, and makes `send_multipart` and `recv_multipart` from `send` and `recv`. The native
methods take the same arguments and do the same, without a detour through Python code. So when pyzmq defines `zmq.Socket`, this
module removes the three methods from the new class. If a version of pyzmq gives one of them other arguments, all of them stay.

A subclass that overrides `send`, `recv` or `get` expects that `send_multipart` and `recv_multipart` call it. In its objects, the
native methods therefore call the removed ones.
"""

from tautline_zmq import _native

# The arguments of the methods of pyzmq that the native ones replace.
_ARGUMENTS = {
    "send": ("self", "data", "flags", "copy", "track", "routing_id", "group"),
    "send_multipart": ("self", "msg_parts", "flags", "copy", "track"),
    "recv_multipart": ("self", "flags", "copy", "track"),
}

# Methods that the removed ones call, and their names in the native class.
_CALLED = {"send": "send", "recv": "recv", "get": "get", "getsockopt": "get"}


class Socket(_native.Socket):
    __slots__ = ()

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if (cls.__module__, cls.__qualname__) == ("zmq.sugar.socket", "Socket"):
            _remove_methods(cls)
        elif hasattr(cls, "_python_send_multipart"):
            cls._CALLS_PYTHON = any(
                getattr(cls, name, None) is not getattr(_native.Socket, native) for name, native in _CALLED.items()
            )


def _remove_methods(cls):
    methods = {name: cls.__dict__.get(name) for name in _ARGUMENTS}
    if all(arguments_of(method) == _ARGUMENTS[name] for name, method in methods.items()):
        for name, method in methods.items():
            delattr(cls, name)
            # The native methods call them by these names.
            setattr(cls, f"_python_{name}", method)


def arguments_of(method):
    """Returns the names of the positional arguments of a function in Python, or `None` for another object."""
    code = getattr(method, "__code__", None)
    return code and code.co_varnames[: code.co_argcount]
