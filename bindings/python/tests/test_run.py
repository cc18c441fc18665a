"""The program that runs these tests."""

import os
import subprocess
import sys
import unittest

import tautline_zmq._native
import zmq


class RunTest(unittest.TestCase):
    def test_run_that_ends_early_fails(self):
        # The runner takes a name for a function that returns tests, and calls it.
        done = subprocess.run(
            [os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.sh"), "sys.exit"],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHON": sys.executable,
                "PYZMQ": os.path.dirname(os.path.dirname(zmq.__file__)),
                "MODULE": tautline_zmq._native.__file__,
            },
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "python: 0 passed, 1 failed, 0 skipped"), done.stderr)


if __name__ == "__main__":
    unittest.main()
