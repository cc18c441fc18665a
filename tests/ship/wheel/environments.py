"""Virtual environments and programs for tests.py. run.sh sets WHEEL, TOOLS, ROOT and CACHE."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

WHEEL, TOOLS, ROOT, CACHE = (Path(os.environ[name]) for name in ("WHEEL", "TOOLS", "ROOT", "CACHE"))
# The wheel with the native module. If run.sh does not set NATIVE, it is WHEEL.
NATIVE = Path(os.environ.get("NATIVE") or WHEEL)
PYZMQ = CACHE / "pyzmq-27.1.0"
WORK = Path(tempfile.mkdtemp(prefix="wheel."))
# Time limit of a command in seconds. Only a command that hangs reaches it.
WATCHDOG = 180

# Typical uses of zmq in a program, and a function that lists the loaded libraries.
EXCHANGE = (Path(__file__).parent / "exchange.py").read_text().split("\nif __name__")[0] + """
def libraries():
    with open("/proc/self/maps") as maps:
        return sorted({line.split(None, 5)[5].strip() for line in maps if "libzmq" in line})

"""

# Runs the exchange, and prints the values that the tests check as JSON.
PROGRAM = EXCHANGE + """
import json, tautline_zmq

exchange()
print(json.dumps({"active": tautline_zmq.active(), "libraries": libraries(), "version": tautline_zmq.version()}))
"""

# Runs the exchange in processes of each start method of multiprocessing.
PROCESSES = EXCHANGE + """
import multiprocessing, tautline_zmq

def work():
    exchange()
    return tautline_zmq.active()

if __name__ == "__main__":
    exchange()
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.apply(work))
"""


class Environment:
    """A virtual environment, empty at first and without pip. The pip of the tools installs into it."""

    def __init__(self, path, python=sys.executable, *options):
        self.path = Path(path)
        self.python = self.path / "bin" / "python"
        if not self.path.exists():
            subprocess.run([python, "-m", "venv", "--without-pip", *options, path], check=True)

    def copy(self):
        path = tempfile.mkdtemp(dir=WORK)
        shutil.copytree(self.path, path, symlinks=True, dirs_exist_ok=True)
        return Environment(path)

    def pip(self, *arguments):
        subprocess.run([TOOLS / "pip", "--quiet", "--python", self.python, *arguments], check=True, timeout=WATCHDOG)

    def install(self, pyzmq=PYZMQ, wheel=WHEEL):
        self.pip("install", "--no-index", wheel)
        if pyzmq:
            self.install_pyzmq(pyzmq)
        return self

    def install_pyzmq(self, pyzmq=PYZMQ, *options):
        self.pip("install", "--no-index", "--no-deps", "--find-links", pyzmq, *options, "pyzmq")

    @property
    def site(self):
        (found,) = self.path.glob("lib/python3*/site-packages")
        return found

    @property
    def library(self):
        return self.site / "tautline_zmq" / "libzmq.so.5"

    @property
    def bundled(self):
        (found,) = self.site.glob("pyzmq.libs/libzmq*")
        return found

    def run(self, *arguments, **variables):
        environment = {**os.environ, **variables}
        try:
            return subprocess.run([self.python, *arguments], env=environment, cwd=WORK, capture_output=True, text=True, timeout=WATCHDOG)
        except subprocess.TimeoutExpired as error:
            said = "".join(text.decode(errors="replace") for text in (error.stdout, error.stderr) if text)
            raise AssertionError(f"{arguments} did not end within {WATCHDOG} s, and said: {said[-2000:]}") from None

    def command(self, *arguments, **variables):
        return self.run("-m", "tautline_zmq", *arguments, **variables)

    def program(self, *options, **variables):
        """Runs PROGRAM and returns the values that it prints."""
        result = self.run(*options, "-c", PROGRAM, **variables)
        if result.returncode or result.stderr:
            raise AssertionError(f"the program said {result.stderr!r}, {result.returncode}")
        return json.loads(result.stdout)

    def files(self):
        return {path.relative_to(self.path) for path in self.path.rglob("*")}


def needs(folder):
    return unittest.skipUnless(folder.exists(), f"{folder.name} could not be fetched")


def has_module(wheel):
    """Returns True if the wheel has the native module for this Python."""
    with zipfile.ZipFile(wheel) as files:
        return sys.version_info >= (3, 11) and any(name.startswith("tautline_zmq/_native") for name in files.namelist())


class Case(unittest.TestCase):
    def on_tautline(self, environment, *options, **variables):
        told = environment.program(*options, **variables)
        self.assertTrue(told["active"])
        self.assertIn(str(environment.library), told["libraries"])

    def on_libzmq(self, environment, *options, **variables):
        told = environment.program(*options, **variables)
        self.assertFalse(told["active"])
        self.assertNotIn(str(environment.library), told["libraries"])
        self.assertTrue(told["libraries"])

    def asynchronous(self, environment, patched, **variables):
        for name in ("asynchronous.py", "asynchronous_edges.py", "asynchronous_turns.py"):
            result = environment.run(Path(__file__).parent / name, **variables)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(json.loads(result.stdout.splitlines()[-1])["patched"], patched)

    def says(self, result, code, *texts):
        """Checks that the command ended with this code, with an empty stderr, and printed all these texts."""
        self.assertEqual((result.returncode, result.stderr), (code, ""), result.stdout)
        for text in texts:
            self.assertIn(text, result.stdout)


def template():
    """Returns an environment with both packages, which is made once. A test that changes it uses a copy."""
    path = WORK / "template"
    return Environment(path) if path.exists() else Environment(path).install()
