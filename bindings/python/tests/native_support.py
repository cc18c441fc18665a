"""Shared parts of the tests of the native API."""

import asyncio
import os
import subprocess
import sys
import unittest
from importlib.util import find_spec

import tautline_zmq
from tautline_zmq import Context, SocketType, aio

# Seconds after which a call hangs. Emulated processors need more time.
PATIENCE = int(os.environ.get("PATIENCE", "60"))
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tautline_zmq.__file__)))


class SyncTest(unittest.TestCase):
    def setUp(self):
        self.context = Context()
        self.addCleanup(self.context.destroy, 0)

    def open(self, kind):
        socket = self.context.socket(kind)
        self.addCleanup(socket.close, 0)
        socket.rcvtimeo = socket.sndtimeo = PATIENCE * 1000
        return socket

    def pair(self, first=SocketType.PAIR, second=SocketType.PAIR, endpoint=None):
        """Returns two connected sockets. The first one is bound."""
        bound, connected = self.open(first), self.open(second)
        connected.connect(bound.bind(endpoint or f"inproc://{id(bound)}"))
        return bound, connected


def run(main, loop="asyncio"):
    """Runs a coroutine, with a limit that ends a test that hangs."""

    async def limited():
        await asyncio.wait_for(main, PATIENCE)

    if loop == "uvloop":
        import uvloop

        uvloop.run(limited())
    else:
        asyncio.run(limited())


class KeepingContext(aio.Context):
    """A context that keeps the sockets of a test alive."""

    def __init__(self):
        super().__init__()
        self.kept = []


class AsyncTest(unittest.TestCase):
    """The test methods are coroutines that take a context. They run on asyncio, and on uvloop if it is installed."""

    loop = "asyncio"

    @classmethod
    def setUpClass(cls):
        if cls.loop == "uvloop" and find_spec("uvloop") is None:
            raise unittest.SkipTest("uvloop is not installed")

    def _callTestMethod(self, method):
        async def main():
            context = KeepingContext()
            try:
                await method(context)
            finally:
                context.destroy(0)

        run(main(), self.loop)

    @staticmethod
    def pair(context, first=SocketType.PAIR, second=SocketType.PAIR, endpoint="tcp://127.0.0.1:*"):
        bound, connected = context.socket(first), context.socket(second)
        context.kept += [bound, connected]
        connected.connect(bound.bind(endpoint))
        return bound, connected


def run_program(test, source, *arguments, variables=None):
    """Runs a program in a new process and returns its output. Fails if it crashes, hangs or writes to standard error."""
    done = subprocess.run(
        # Python 3.12 and later warn about a fork in a process with threads.
        [sys.executable, "-W", "ignore:This process", "-X", "faulthandler", "-c", source, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")])), **(variables or {})},
        check=False,
    )
    test.assertEqual((done.returncode, done.stderr), (0, ""), source)
    return done.stdout.strip()
