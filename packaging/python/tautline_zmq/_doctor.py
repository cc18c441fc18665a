"""`python -m tautline_zmq doctor`: shows the libraries that `import zmq` loads, the reason, and a remedy.

The command imports zmq like any other program, so it gets the same library.
"""

import ctypes
import glob
import os
import re
import site
import sys
import sysconfig

from tautline_zmq import _BeforeZmq, _library, _selection, version

# Variables that this package, the loader, Python and the engine read.
VARIABLES = re.compile(r"TAUTLINE_|TAUT_|LD_(PRELOAD|LIBRARY_PATH|AUDIT|BIND_NOW)$|PYTHON(PATH|HOME|NOUSERSITE)$|PYZMQ_|ZMQ_")


def run():
    ours = os.path.realpath(_library.PATH)
    hooked = _BeforeZmq in sys.meta_path
    show("Python", f"{sys.version.split()[0]} ({sysconfig.get_platform()}), {sys.executable}")
    show("tautline-zmq", f"{version()}, {os.path.dirname(_library.PATH)}")
    show("at start", "Python ran the startup file" if hooked else "Python ran no startup file of this package")
    switch = next(filter(os.path.exists, _library.switches()), None)
    mark = next(filter(os.path.exists, _selection.marks()), None)
    show("switch", f"off: {switch}" if switch else f"on, native: {mark}" if mark else "on")
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if VARIABLES.match(name)]
    show("variables", "  ".join(variables) or "(the relevant variables are not set)")
    if _library.unknown():
        show("", _library.unknown())

    try:
        import zmq
    except Exception as error:
        show("pyzmq", f"cannot be imported: {error}")
        if isinstance(error, ModuleNotFoundError) and error.name == "zmq":
            return verdict(False, "pyzmq is not installed", "pip install pyzmq")
        own = os.environ.get(_selection.PYZMQ_VARIABLE)
        if own:
            advice = f"unset {_selection.PYZMQ_VARIABLE}, or set it to {_selection.BACKEND}"
            return verdict(False, f"{_selection.PYZMQ_VARIABLE}={own} selects its backend", advice)
        return verdict(False, "it cannot be imported", f"try the import without Tautline: {_library.VARIABLE}=0")
    show("pyzmq", f"{zmq.__version__}, {os.path.dirname(zmq.__file__)}")
    show("its libzmq", ", ".join(bundled(zmq)) or "the system's")
    for path in _library.mapped():
        show("mapped", path + (" (this package's)" if path == ours else ""))

    calls = functions()
    owners = {name: _library.owner(name) for name in calls}
    elsewhere = [name for name in calls if owners[name] != ours]
    for path in sorted({path for path in owners.values() if path}):
        count = sum(owner == path for owner in owners.values())
        show("calls", f"{count} of the {len(calls)} functions of libzmq that pyzmq calls go to {path}")
    if None in owners.values():
        count = sum(owner is None for owner in owners.values())
        show("calls", f"{count} of the {len(calls)} functions of libzmq that pyzmq calls go to its own library")
    if says_tautline():
        show("zmq_has", "tautline")
    show("asyncio", faster_asyncio())
    used = _selection.in_use()
    names = {"native": "Tautline's native backend", "library": "Tautline's library", "pyzmq": f"pyzmq's backend {backend(zmq)}, another library"}
    show("runs on", names[used])
    show("decided by", _selection.setting())
    show("native", native(used))

    if used == "native" or used == "library" and not elsewhere:
        return verdict(True, "", "")
    return verdict(False, *explanation(hooked, elsewhere))


def backend(zmq):
    """Returns the name of the module from which pyzmq's classes come."""
    return getattr(zmq.backend.Socket, "__module__", "")


def native(used):
    """Returns the state of the native backend, and a remedy if it is not in use."""
    if used == "native":
        file = sys.modules["tautline_zmq._native"].__file__
        return f"{file}. Extension modules that use pyzmq's C interface (cimport zmq) need {_library.VARIABLE}=library"
    if not _selection.has_module():
        return "this wheel has no native module for this Python: build or install the wheel for it"
    if _selection.outcome:
        return f"cannot be used: {_selection.outcome}. Reinstall the wheel, then run python -m tautline_zmq on"
    if _selection.native_setting():
        return "not in use, because Python ran no startup file or zmq was imported before"
    if _selection.PYZMQ_VARIABLE in os.environ:
        return f"not selected: unset {_selection.PYZMQ_VARIABLE}"
    return f"not selected: python -m tautline_zmq on, or {_library.VARIABLE}=native for one program"


def faster_asyncio():
    """Returns the state of the faster methods of zmq.asyncio, which do not depend on the library."""
    from tautline_zmq import _asyncio

    try:
        import zmq.asyncio
    except ImportError as error:
        return f"zmq.asyncio cannot be imported: {error}"
    if "_tautline" in zmq.asyncio.Socket.__dict__:
        waits = " and waits by the engine's descriptors" if "__init__" in zmq.asyncio.Socket.__dict__ else ""
        return f"zmq.asyncio has the faster methods of this package{waits} ({_library.VARIABLE}=library turns them off)"
    return f"zmq.asyncio is as in pyzmq: {_asyncio.outcome or 'it was imported before install() was called'}"


def explanation(hooked, elsewhere):
    """Returns the reason why pyzmq does not run on Tautline, and a remedy."""
    outcome = _library.outcome
    if _selection.PYZMQ_VARIABLE in os.environ and not outcome:
        return _selection.setting(), f"unset {_selection.PYZMQ_VARIABLE}"
    if outcome == "" and _library.serves():
        names = ", ".join(elsewhere)
        return f"this pyzmq calls functions that Tautline does not have: {names}", "python -m tautline_zmq off, and report it to us"
    if not hooked:
        return "Python ran no startup file of tautline-zmq", start_advice()
    if outcome is None:
        return "another finder found zmq before Tautline's", f"look for the finder that stands before Tautline's: {sys.meta_path}"
    if outcome == "":
        return "another libzmq comes first", "see LD_PRELOAD and LD_AUDIT above"
    if outcome.startswith(f"{_library.VARIABLE}="):
        return outcome, f"unset {_library.VARIABLE}"
    if outcome.endswith(" is there"):
        return outcome, f"python -m tautline_zmq on, or remove the file, or {_library.VARIABLE}=1 for one program"
    if "cannot be loaded" in outcome:
        advice = "reinstall the wheel for this system: pip install --force-reinstall tautline_zmq-*.whl"
        return outcome, advice
    advice = "take it out of LD_PRELOAD" if os.environ.get("LD_PRELOAD") else "import zmq before the module that loaded it"
    if says_tautline():
        advice += " (that library is a Tautline as well)"
    return outcome, advice


def start_advice():
    """Returns a remedy. Python runs startup files only in its site directories, and only without -S."""
    folder = os.path.dirname(os.path.dirname(_library.PATH))
    if sys.flags.no_site:
        return "start Python without -S, or call tautline_zmq.install() before zmq is imported"
    if folder not in map(os.path.realpath, site.getsitepackages() + [site.getusersitepackages()]):
        return f"Python runs no startup files in {folder}: call tautline_zmq.install() before zmq is imported"
    return f"{os.path.join(folder, 'tautline_zmq.pth')} is missing or failed: reinstall the wheel"


def bundled(zmq):
    """Returns the paths of the libzmq in pyzmq's wheel: beside the package, or in it."""
    beside = os.path.dirname(os.path.dirname(zmq.__file__))
    found = glob.glob(os.path.join(glob.escape(beside), "pyzmq.libs", "libzmq*"))
    return sorted(found + glob.glob(os.path.join(glob.escape(os.path.dirname(zmq.__file__)), "libzmq*")))


def functions():
    """Returns the functions of libzmq that pyzmq's extension modules name, if a libzmq of this process has them."""
    libraries = [ctypes.CDLL(path) for path in _library.mapped()]
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.startswith("zmq.") and file.endswith(".so"):
            with open(file, "rb") as extension:
                names = re.findall(rb"(?<=\0)zmq_[a-z0-9_]+(?=\0)", extension.read())
            found.update(name.decode() for name in names)
    return sorted(name for name in found if any(hasattr(library, name) for library in libraries))


def says_tautline():
    """Returns True if the first libzmq of this process identifies itself as Tautline."""
    try:
        return ctypes.CDLL(None).zmq_has(b"tautline") == 1
    except AttributeError:
        return False


def show(what, text):
    print(f"{what:>13}  {text}")


def verdict(well, reason, advice):
    print()
    if well:
        print("pyzmq runs on Tautline.")
        return 0
    print(f"pyzmq does not run on this Tautline: {reason}")
    print(f"Remedy: {advice}")
    return 1
