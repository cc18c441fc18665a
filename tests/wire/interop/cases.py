"""A case is a name and a function of the path of our library. Each runs in a process of its own, under a time limit."""

import faulthandler
import os
import signal
import sys
import tempfile
import traceback

LIMIT_S = 120
SKIPPED = 77


class Skip(Exception):
    """The case is about something that the library at hand, or the machine, has not."""


def run(suite, script, cases, library, parts, skipped=0, tries=1):
    """Runs the cases whose name contains one of `parts` (all, if there are none); returns the exit code. `script` is the one of
    this folder that was run. A case may be tried more than once where the peer is known to fail now and then."""
    chosen = [(name, body) for name, body in cases if not parts or any(part in name for part in parts)]
    print(f"{suite}: {len(chosen)} cases with {library}", flush=True)
    passed = failed = 0
    for name, body in chosen:
        for left in reversed(range(tries)):
            status, output = in_a_process(body, library)
            if status in (0, SKIPPED) or not left:
                break
            print(f"tried again: {name}\n{output}", flush=True)
        if status == SKIPPED:
            skipped += 1
            print(f"skipped {name}: {output.strip()}", flush=True)
        elif status:
            failed += 1
            print(f"FAILED {name}\n{output}\nagain: tests/wire/interop/{script} '' '{name}'", flush=True)
        else:
            passed += 1
            print(f"passed {name}", flush=True)
    print(f"{suite}: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not chosen else 0


def in_a_process(body, library):
    """How the case ended (0, SKIPPED or anything else), and what it said before."""
    with tempfile.TemporaryFile("w+") as output:
        pid = os.fork()
        if pid == 0:
            child(body, library, output)
        _, status = os.waitpid(pid, 0)
        output.seek(0)
        if os.WIFSIGNALED(status):
            return 1, f"{output.read()}ended by signal {os.WTERMSIG(status)}\n"
        return os.WEXITSTATUS(status), output.read()


def child(body, library, output):
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    code = 1
    try:
        body(library)
        code = 0
    except Skip as reason:
        print(reason)
        code = SKIPPED
    except BaseException:  # the process ends here, whatever it was
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # No clean-up by the interpreter: what a case leaves open is not under test.
    os._exit(code)
