"""Peers (`peer.py`), waiting, and counting cases."""

import faulthandler
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).parent
PATIENCE = 60  # seconds until a case has hung


class Skipped(Exception):
    """Why a case cannot be tried here."""


class Peer:
    """A program that does what it is told."""

    all = []
    library = None

    def __init__(self, names=None, host=None, program=None, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        environment["LD_PRELOAD"] = Peer.library
        if names is not None:
            environment["TAUT_NAMES"] = str(names)
        environment.update(variables)
        self.errors = tempfile.TemporaryFile("w+")
        command = (["ip", "netns", "exec", host] if host else []) + [sys.executable, str(HERE / "peer.py")]
        self.process = subprocess.Popen(
            program or command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        Peer.all.append(self)

    def __call__(self, *command):
        """What became of a command: its value, or the name of its errno."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"it has died: {self.said()}"
        answer = json.loads(line)
        return answer.get("errno", answer.get("value"))

    def socket(self, name, kind, connect=None, bind=None, **options):
        assert self("socket", name, kind, options) is True
        if connect:
            got = self("connect", name, connect)
            assert got is True, got
        if bind:
            got = self("bind", name, bind)
            assert got is True, got

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, self.said()


def until(what, condition):
    """Waits for `condition`, which gives something that is true."""
    end = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not so in {PATIENCE} s: {what}"
        time.sleep(0.02)


def replace(path, text):
    """Changes a file as an editor does."""
    new = pathlib.Path(f"{path}.new")
    new.write_text(text)
    os.replace(new, path)
    return path


def run(suite, cases, words):
    """Runs the cases with one of the words in their names; ends with the counts."""
    passed = failed = skipped = 0
    for case in cases:
        if words and not any(word in case.__name__ for word in words):
            continue
        faulthandler.dump_traceback_later(10 * PATIENCE, exit=True)
        began = time.monotonic()
        try:
            case()
            passed += 1
            print(f"ok      {case.__name__} ({time.monotonic() - began:.1f} s)", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"skipped {case.__name__}: {why}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {case.__name__}", flush=True)
            traceback.print_exc()
        finally:
            for peer in Peer.all:
                peer.kill()
            Peer.all.clear()
        faulthandler.cancel_dump_traceback_later()
    print(f"{suite}: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)
