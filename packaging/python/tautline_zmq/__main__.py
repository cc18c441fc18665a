"""`python -m tautline_zmq`: on, off, status, doctor, bench, info."""

import argparse
import os
import sys

from tautline_zmq import _library, active, version


def main():
    parser = argparse.ArgumentParser(prog="python -m tautline_zmq", description="Runs pyzmq on Tautline, in this Python environment.")
    parser.add_argument("--version", action="version", version=_shown_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("status", help="show the library that pyzmq runs on; the exit code is 0 if it is Tautline")
    commands.add_parser("off", help="run pyzmq on its own library, in this environment, until `on`")
    commands.add_parser("on", help="undo `off`")
    commands.add_parser("doctor", help="show the libraries that this process loads, the reason, and a remedy")
    bench = commands.add_parser("bench", help="measure pyzmq with and without Tautline, in about 40 seconds")
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
    except ImportError as error:
        print(f"cannot import pyzmq: {error}")
        return 1
    if active():
        print(f"on: pyzmq {zmq.__version__} runs on Tautline {version()}")
        return 0
    if _library.outcome is None:
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
    print(f"off, for programs that start from now on: wrote {switch}")
    return 0


def on():
    switch = _library.switches()[-1]
    try:
        os.remove(switch)
    except FileNotFoundError:
        pass
    except OSError as error:
        print(f"cannot remove {switch}: {error.strerror}")
        return 1
    reason = _library.why_off()
    print(f"still off: {reason}" if reason else "on, for programs that start from now on")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
