"""A case is a name and a function of the path of our library. Each runs in a process of its own, under a time limit."""

import faulthandler
import os
import signal
import sys
import tempfile
import traceback

LIMIT_S = 30


def run(suite, cases, library, parts, skipped=0):
    """Runs the cases whose name contains one of `parts` (all, if there are none); returns the exit code."""
    chosen = [(name, body) for name, body in cases if not parts or any(part in name for part in parts)]
    print(f"{suite}: {len(chosen)} cases with {library}", flush=True)
    failed = 0
    for name, body in chosen:
        output = in_a_process(body, library)
        if output is not None:
            failed += 1
            print(f"FAILED {name}\n{output}", flush=True)
        elif parts:
            print(f"passed {name}", flush=True)
    print(f"{suite}: {len(chosen) - failed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not chosen else 0


def in_a_process(body, library):
    """None if the case passes; else what it said before it ended."""
    with tempfile.TemporaryFile("w+") as output:
        pid = os.fork()
        if pid == 0:
            child(body, library, output)
        _, status = os.waitpid(pid, 0)
        if status == 0:
            return None
        output.seek(0)
        ending = f"ended by signal {os.WTERMSIG(status)}\n" if os.WIFSIGNALED(status) else ""
        return output.read() + ending


def child(body, library, output):
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    code = 1
    try:
        body(library)
        code = 0
    except BaseException:  # the process ends here, whatever it was
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # No clean-up by the interpreter: what a case leaves open is not under test.
    os._exit(code)
