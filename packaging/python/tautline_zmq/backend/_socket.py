"""The base class of `zmq.Socket`, with native methods in place of those that pyzmq adds in Python.

`zmq.Socket` wraps `send` of its base class, and makes `send_multipart` and `recv_multipart` from `send` and `recv`. The native
methods take the same arguments and do the same, without a detour through Python code. So when pyzmq defines `zmq.Socket`, this
module removes the three methods from the new class. If a version of pyzmq gives one of them other arguments, all of them stay.

A subclass that overrides `send` or `recv` gets the removed methods back, because they call what it overrides.
"""

from tautline_zmq import _native

# The arguments of the methods of pyzmq that the native ones replace.
_ARGUMENTS = {
    "send": ("self", "data", "flags", "copy", "track", "routing_id", "group"),
    "send_multipart": ("self", "msg_parts", "flags", "copy", "track"),
    "recv_multipart": ("self", "flags", "copy", "track"),
}

# Methods that `zmq.Socket` calls in a method of pyzmq.
_CALLED = {"send_multipart": ("send",), "recv_multipart": ("recv", "get", "getsockopt")}

# The methods that were removed from `zmq.Socket`.
_removed = {}


class Socket(_native.Socket):
    __slots__ = ()

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        if (cls.__module__, cls.__qualname__) == ("zmq.sugar.socket", "Socket"):
            _remove_methods(cls)
        elif _removed:
            _restore_methods(cls)


def _remove_methods(cls):
    methods = {name: cls.__dict__.get(name) for name in _ARGUMENTS}
    if all(_arguments(method) == _ARGUMENTS[name] for name, method in methods.items()):
        for name, method in methods.items():
            delattr(cls, name)
            _removed[name] = method


def _restore_methods(cls):
    for name, called in _CALLED.items():
        is_native = getattr(cls, name) is getattr(_native.Socket, name)
        if is_native and any(_overrides(cls, method) for method in called):
            setattr(cls, name, _removed[name])


def _overrides(cls, method):
    native = "get" if method == "getsockopt" else method
    return getattr(cls, method, None) is not getattr(_native.Socket, native)


def _arguments(method):
    """Returns the names of the positional arguments of a function in Python, or `None` for another object."""
    code = getattr(method, "__code__", None)
    return code and code.co_varnames[: code.co_argcount]
