"""Loads the library once, unless it is off or the process has another libzmq. Finds the libzmq that a process uses."""

import ctypes
import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libzmq.so.5")
VARIABLE = "TAUTLINE_PYZMQ"
# Values of the variable that turn everything off, values that turn it on, the names of the parts, and the native backend.
OFF = ("0", "off", "no", "false")
ON = ("1", "on", "yes", "true")
PARTS = ("library", "asyncio")
NATIVE = "native"
# pyzmq's variable, with which a program chooses a backend itself, and its values that select ours.
PYZMQ_VARIABLE = "PYZMQ_BACKEND"
BACKENDS = ("tautline_zmq.backend", "tautline_zmq")

# Result of loading: `None` before the first attempt, "" if the library is loaded, otherwise the reason for the failure.
outcome = None


def load(no_backend=""):
    """Loads the library for the whole process. Only the first call has an effect: pyzmq keeps the library that it found.

    `no_backend` is the reason why the native backend, which was selected, is not in use.
    """
    global outcome
    if outcome is not None:
        return
    outcome = _load()
    if (outcome or no_backend) and _asked_for() and sys.stderr:
        problem = "does not run on Tautline" if outcome else "runs on Tautline's library, because the native backend failed"
        reasons = "; the native backend: ".join(filter(None, (outcome, no_backend)))
        print(f"tautline-zmq: pyzmq {problem}: {reasons}", file=sys.stderr)


def _load():
    reason = why_off()
    if reason:
        return reason
    # A module that uses another libzmq may bind a function only at the first call. That call would then reach our function
    # with a socket of the other library.
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


def why_off(part="library"):
    """Returns the setting that turns a part off, or "" if it is on: "library", or "asyncio" for the faster zmq.asyncio.

    The variables override the files. With the name of one part as its value, the other part is off.
    """
    value = selected()
    if value in OFF or value in PARTS and value != part:
        return f"{VARIABLE}={os.environ[VARIABLE]}"
    if value or part == "asyncio" and os.environ.get(PYZMQ_VARIABLE) in BACKENDS:
        return ""
    for switch in switches():
        if os.path.exists(switch):
            return f"{switch} is there"
    return ""


def selected():
    """Returns the value of the variable in lower case, or "" if it is unset or not known."""
    value = os.environ.get(VARIABLE, "").lower()
    return value if value in (*OFF, *ON, *PARTS, NATIVE) else ""


def unknown():
    """Returns a sentence about a value of the variable that is not known, or ""."""
    value = os.environ.get(VARIABLE, "")
    return f"{VARIABLE}={value} is ignored: it may be 0, 1, library, asyncio or native" if value and not selected() else ""


def _asked_for():
    """True if the variable turns the library on."""
    return bool(selected()) and not why_off()


def switches(name="tautline_zmq.off"):
    """Returns the paths of the files that turn the package off, if they exist, or those of other files that decide.

    The first holds for every environment that uses this installation, the second for a virtual environment on top of it.
    The files do not belong to the package, so they survive an upgrade.
    """
    beside = os.path.join(os.path.dirname(os.path.dirname(PATH)), name)
    if beside.startswith(os.path.join(sys.prefix, "")) or sys.prefix == sys.base_prefix:
        return [beside]
    return [beside, os.path.join(sys.prefix, name)]


def spec_with(name, path, target, then):
    """Returns the spec of a module by the other finders. Its loader calls `then(module)` after executing the module."""
    for finder in sys.meta_path:
        if getattr(finder, "__name__", "") != "_BeforeZmq" and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
    else:
        return None
    execute = spec.loader.exec_module

    def exec_module(module):
        execute(module)
        # A loader may serve several modules.
        if module.__name__ == name:
            then(module)

    spec.loader.exec_module = exec_module
    return spec


def serves():
    """Returns True if the functions that pyzmq calls are those of this library."""
    return outcome == "" and owner("zmq_ctx_new") == os.path.realpath(PATH)


def address(function):
    """Returns the address to which later modules resolve the function, or `None` if the process does not export it."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), function), ctypes.c_void_p).value
    except AttributeError:
        return None


def owner(function):
    """Returns the file that contains the function, or `None` if the process does not export it."""
    where = address(function)
    for begin, end, path in _mappings():
        if where and begin <= where < end:
            return path
    return None


def mapped():
    """Returns the mapped files of this process whose names contain libzmq."""
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
