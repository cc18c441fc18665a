"""Chooses the base of pyzmq in this process: the native backend, the library of this package, or its own library.

`python -m tautline_zmq on` marks an environment for the native backend, after a test. The selection changes no environment
variable, because a child process may run another Python. In place of PYZMQ_BACKEND, pyzmq's function `select_backend` gets our
backend. If the backend cannot be imported, pyzmq runs on the library.
"""

import functools
import importlib
import importlib.util
import os
import subprocess
import sys

from tautline_zmq import _library

PYZMQ_VARIABLE, BACKENDS = _library.PYZMQ_VARIABLE, _library.BACKENDS
BACKEND = BACKENDS[0]
MARK = "tautline_zmq.native"
NO_PYZMQ = "pyzmq is not installed in this environment"

# Result of the attempt to use the backend: `None` without an attempt, "" if it is imported, otherwise the reason of the failure.
outcome = None

_chosen = False

# Seconds after which the test of the backend has failed.
_PATIENCE = 60
_TEST = """
import zmq
context = zmq.Context()
one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
one.bind("inproc://test")
other.connect("inproc://test")
one.send(b"message")
assert other.recv() == b"message", "a message changed"
context.destroy()
"""


def choose():
    """Imports the backend, or loads the library. Only the first call has an effect."""
    global _chosen, outcome
    if _chosen:
        return
    _chosen = True
    if _library.unknown() and sys.stderr:
        print(f"tautline-zmq: {_library.unknown()}", file=sys.stderr)
    if os.environ.get(PYZMQ_VARIABLE) in BACKENDS:
        # pyzmq imports the backend, and reports a failure.
        return
    if not native_setting():
        _library.load()
        return
    try:
        importlib.import_module(BACKEND)
        outcome = ""
    except Exception as error:
        _fall_back(error)


def find_spec(name, path, target):
    """Returns the spec of zmq.backend.select, whose function then selects our backend. `None` if pyzmq shall select its own."""
    if outcome != "" and os.environ.get(PYZMQ_VARIABLE) not in BACKENDS:
        return None
    return _library.spec_with(name, path, target, _redirect)


def _redirect(module):
    select = module.select_backend

    @functools.wraps(select)
    def select_backend(name):
        if name in BACKENDS:
            return select(BACKEND)
        if name in ("zmq.backend.cython", "zmq.backend.cffi") and PYZMQ_VARIABLE not in os.environ and outcome == "":
            try:
                return select(BACKEND)
            except Exception as error:
                _fall_back(error)
        return select(name)

    module.select_backend = select_backend


def _fall_back(error):
    global outcome
    outcome = f"{type(error).__name__}: {error}"
    _library.load(outcome)


def native_setting():
    """Returns the setting that selects the native backend, or ""."""
    own = os.environ.get(PYZMQ_VARIABLE)
    if own is not None:
        return f"{PYZMQ_VARIABLE}={own}" if own in BACKENDS else ""
    value = _library.selected()
    if value == _library.NATIVE:
        return f"{_library.VARIABLE}={os.environ[_library.VARIABLE]}"
    if value in _library.PARTS or _library.why_off():
        return ""
    return next((f"{mark} is there" for mark in marks() if os.path.exists(mark)), "")


def setting():
    """Returns the setting that decides what pyzmq runs on."""
    if native_setting():
        return native_setting()
    if PYZMQ_VARIABLE in os.environ:
        return f"{PYZMQ_VARIABLE}={os.environ[PYZMQ_VARIABLE]}"
    if _library.why_off():
        return _library.why_off()
    value = _library.selected()
    return f"{_library.VARIABLE}={value}" if value else "the default after an installation"


def marks():
    """Returns the paths of the files that select the native backend, if they exist."""
    return _library.switches(MARK)


def in_use():
    """Returns the base of pyzmq in this process: "native", "library" or "pyzmq", for its own library. zmq must be imported."""
    native, backend = sys.modules.get("tautline_zmq._native"), sys.modules.get("zmq.backend")
    if native and backend and issubclass(backend.Socket, native.Socket):
        return "native"
    return "library" if _library.serves() else "pyzmq"


def has_module():
    """Returns True if this package has a native module for this Python."""
    return importlib.util.find_spec("tautline_zmq._native") is not None


def test():
    """Sends a message by the native backend in a new process. Returns the reason of a failure, or ""."""
    if not has_module():
        name = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
        return f"this wheel has no native module for {name}"
    if not sys.executable:
        return "the path of this Python is unknown"
    environment = {**os.environ, PYZMQ_VARIABLE: BACKEND}
    environment.pop(_library.VARIABLE, None)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TEST], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=_PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"a test of it took more than {_PATIENCE} seconds"
    except OSError as error:
        return f"cannot run {sys.executable}: {error.strerror}"
    if done.returncode < 0:
        return f"a test of it ended with signal {-done.returncode}"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        if lines and lines[-1] == "ModuleNotFoundError: No module named 'zmq'":
            return NO_PYZMQ
        return lines[-1] if lines else f"a test of it ended with code {done.returncode}"
    return ""
