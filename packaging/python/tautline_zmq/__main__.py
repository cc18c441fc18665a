"""`python -m tautline_zmq`: on, off, status, doctor, bench, info."""

import argparse
import os
import sys

from tautline_zmq import _library, _selection, version


def main():
    parser = argparse.ArgumentParser(prog="python -m tautline_zmq", description="Runs pyzmq on Tautline, in this Python environment.")
    parser.add_argument("--version", action="version", version=_shown_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("status", help="show what pyzmq runs on; the exit code is 0 if it is Tautline")
    commands.add_parser("off", help="run pyzmq on its own library, in this environment, until `on`")
    commands.add_parser("on", help="run pyzmq on the native backend after a test, else on the library; undo `off`")
    commands.add_parser("doctor", help="show the libraries that this process loads, the reason, and a remedy")
    bench = commands.add_parser("bench", help="measure pyzmq with and without Tautline, in about 40 seconds, on an idle machine")
    bench.add_argument("--rounds", type=int, default=3, help="number of measurements of each case with each library (3)")
    bench.add_argument("--seconds", type=float, default=1.0, help="length of each measurement (1)")
    commands.add_parser("info", help="show the versions, features and files of the native module")
    arguments = parser.parse_args()
    if arguments.command == "info":
        from tautline_zmq import _info

        return _info.run()
    if arguments.command == "doctor":
        from tautline_zmq import _doctor

        return _doctor.run()
    if arguments.command == "bench":
        from tautline_zmq import _bench

        return _bench.run(arguments.rounds, arguments.seconds)
    return {"status": status, "off": off, "on": on}[arguments.command]()


def _shown_version():
    try:
        return version()
    except ImportError:
        return "unknown: the package is not installed"


def status():
    try:
        import zmq
    except Exception as error:
        print(f"cannot import pyzmq: {error}")
        if os.environ.get(_selection.PYZMQ_VARIABLE):
            print(f"{_selection.PYZMQ_VARIABLE}={os.environ[_selection.PYZMQ_VARIABLE]} selects its backend. Tautline's is {_selection.BACKEND}.")
        return 1
    used = _selection.in_use()
    if used != "pyzmq":
        part = "native backend" if used == "native" else "library"
        print(f"on: pyzmq {zmq.__version__} runs on Tautline {version()}, by its {part} ({_selection.setting()})")
        if _selection.outcome:
            print(f"the native backend cannot be used: {_selection.outcome}")
        return 0
    if _selection.PYZMQ_VARIABLE in os.environ and not _library.outcome:
        reason = _selection.setting()
    elif _library.outcome is None:
        reason = "tautline_zmq.install() was not called when Python started"
    else:
        reason = _library.outcome or "another libzmq comes first"
    print(f"off: pyzmq {zmq.__version__} does not run on Tautline: {reason}")
    return 1


def off():
    switch = _library.switches()[-1]
    try:
        with open(switch, "w") as file:
            file.write("While this file exists, pyzmq runs on its own libzmq. python -m tautline_zmq on removes the file.\n")
    except OSError as error:
        print(f"cannot write {switch}: {error.strerror}. To turn Tautline off for one program, set {_library.VARIABLE}=0.")
        return 1
    _remove(_selection.marks()[-1])
    print(f"off, for programs that start from now on: wrote {switch}")
    return 0


def on():
    if not _remove(_library.switches()[-1]):
        return 1
    reason = _library.why_off()
    if reason:
        print(f"still off: {reason}")
        return 1
    mark = _selection.marks()[-1]
    reason = _selection.test()
    if not reason:
        try:
            with open(mark, "w") as file:
                file.write("While this file exists, pyzmq runs on Tautline's native backend. python -m tautline_zmq off removes the file.\n")
        except OSError as error:
            reason = f"cannot write {mark}: {error.strerror}"
    elif not _remove(mark):
        return 1
    if reason == _selection.NO_PYZMQ:
        print(f"{reason}: pip install pyzmq, then run this command again")
        return 1
    if reason:
        print("on, for programs that start from now on: pyzmq runs on Tautline's library")
        print(f"not on the native backend: {reason}")
    else:
        print(f"on, for programs that start from now on: pyzmq runs on the native backend, which passed a test; wrote {mark}")
    own = next((name for name in (_selection.PYZMQ_VARIABLE, _library.VARIABLE) if os.environ.get(name)), None)
    if own:
        print(f"In this shell, {own}={os.environ[own]} decides.")
    return 0


def _remove(path):
    """Removes a file if it exists. Returns False after an error, which it prints."""
    try:
        os.remove(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        print(f"cannot remove {path}: {error.strerror}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
