"""Shared parts of the tests: sockets that are closed afterwards, and programs in processes of their own."""

import os
import subprocess
import sys
import unittest

import zmq

# A call that takes longer than this hangs. Emulated processors need more time.
PATIENCE = int(os.environ.get("PATIENCE", "60"))


class SocketTest(unittest.TestCase):
    def setUp(self):
        self.context = zmq.Context()
        self.addCleanup(self.context.destroy, 0)

    def pair(self, first=zmq.PAIR, second=zmq.PAIR, endpoint=None):
        """Returns two connected sockets. The first one is bound."""
        bound, connected = self.context.socket(first), self.context.socket(second)
        bound.rcvtimeo = connected.rcvtimeo = bound.sndtimeo = connected.sndtimeo = PATIENCE * 1000
        bound.bind(endpoint or f"inproc://{id(bound)}")
        connected.connect(bound.last_endpoint)
        return bound, connected


class ProgramTest(unittest.TestCase):
    environment = None

    def run_program(self, source):
        """Runs a program in a new process and returns its output. Fails if it crashes, hangs or writes to standard error."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", source],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self.environment,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), source)
        return done.stdout.strip()
