"""Loads the library, once, if nothing speaks against it, and tells which libzmq a process has."""

import ctypes
import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libzmq.so.5")
VARIABLE = "TAUTLINE_PYZMQ"

# What came of loading: None before it was tried, "" if the library is loaded, else the reason why it is not.
outcome = None


def load():
    """Loads the library for the whole process. Only the first call counts: later, pyzmq is bound to what it found."""
    global outcome
    if outcome is not None:
        return
    outcome = _load()
    if outcome and _asked_for() and sys.stderr:
        print(f"tautline-zmq: pyzmq does not run on Tautline: {outcome}", file=sys.stderr)


def _load():
    reason = why_off()
    if reason:
        return reason
    # Who is bound to another libzmq binds some functions only when it first calls them. Those would be ours, and handed
    # the other one's sockets.
    ours = os.path.realpath(PATH)
    others = [path for path in mapped() if path != ours]
    if not others and address("zmq_ctx_new") and owner("zmq_ctx_new") != ours:
        others = ["the program itself"]
    if others:
        return f"another libzmq is in the process already: {others[0]}"
    try:
        ctypes.CDLL(PATH, ctypes.RTLD_GLOBAL)
    except OSError as error:
        return f"the library cannot be loaded: {error}"
    return ""


def why_off():
    """Who has turned it off; "" if nobody has. The variable has the last word."""
    if os.environ.get(VARIABLE):
        return "" if _asked_for() else f"{VARIABLE}={os.environ[VARIABLE]}"
    for switch in switches():
        if os.path.exists(switch):
            return f"{switch} is there"
    return ""


def _asked_for():
    return os.environ.get(VARIABLE, "").lower() not in ("", "0", "off", "no", "false")


def switches():
    """The files that turn it off: for all that use this installation, and for a virtual environment on top of it.

    They belong to no package, so that they outlive an upgrade.
    """
    beside = os.path.join(os.path.dirname(os.path.dirname(PATH)), "tautline_zmq.off")
    if beside.startswith(os.path.join(sys.prefix, "")) or sys.prefix == sys.base_prefix:
        return [beside]
    return [beside, os.path.join(sys.prefix, "tautline_zmq.off")]


def serves():
    """Returns True if the functions that pyzmq calls are those of this library."""
    return outcome == "" and owner("zmq_ctx_new") == os.path.realpath(PATH)


def address(function):
    """Returns the address to which later modules resolve the function; None if they must bring their own."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value
    except AttributeError:
        return None


def owner(function):
    """The file that the function at `address` is in."""
    where = address(function)
    for begin, end, path in _mappings():
        if where and begin <= where < end:
            return path
    return None


def mapped():
    """The files of this process that are a libzmq, by their names."""
    return sorted({path for _, _, path in _mappings() if "libzmq" in os.path.basename(path)})


def _mappings():
    try:
        with open("/proc/self/maps", errors="surrogateescape") as lines:
            for line in lines:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) == 6:
                    begin, end = fields[0].split("-")
                    yield int(begin, 16), int(end, 16), fields[5]
    except OSError:
        return
