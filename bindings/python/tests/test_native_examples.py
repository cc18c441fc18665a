"""Every program of packaging/python/examples runs and shows what it promises."""

import importlib.util
import os
import subprocess
import sys
import unittest

from native_support import PACKAGE, PATIENCE

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "..", "packaging", "python", "examples")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))}


class ExampleTest(unittest.TestCase):
    def start(self, *command):
        """Starts an example, and ends it after the test."""
        process = subprocess.Popen(
            [sys.executable, os.path.join(EXAMPLES, command[0]), *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def run_example(self, *command):
        process = self.start(*command)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, output)
        return output

    def test_pipeline(self):
        self.assertEqual(self.run_example("pipeline.py", "100", "2"), "sum of squares: 328350\n")

    def test_rpc(self):
        output = self.run_example("rpc.py").splitlines()
        self.assertEqual(output, ["2 + 3 = 5", "sums: 9900", "error: ZeroDivisionError: division by zero"])

    def test_numpy_frames(self):
        if importlib.util.find_spec("numpy") is None:
            self.skipTest("numpy is not installed")
        self.assertRegex(self.run_example("numpy_frames.py", "4"), r"^4 MiB in \d+ ms, equal: True\n$")

    def test_pubsub(self):
        publisher = self.start("pubsub.py", "publish", "tcp://127.0.0.1:*", "5")
        endpoint = publisher.stdout.readline().split()[1]
        output = self.run_example("pubsub.py", "subscribe", endpoint, "Oslo").splitlines()
        self.assertEqual(output[-1], f"{len(output) - 1} readings")
        self.assertTrue(output[0].startswith("Oslo "))

    def test_chat(self):
        server = self.start("chat.py", "server", "tcp://127.0.0.1:*")
        endpoint = server.stdout.readline().split()[1]
        ann = self.start("chat.py", endpoint, "Ann")
        self.assertEqual(ann.stdout.readline(), "Ann: joins\n")
        bob = self.start("chat.py", endpoint, "Bob")
        self.assertEqual(bob.stdout.readline(), "Bob: joins\n")
        bob.stdin.write("hello\n")
        bob.stdin.flush()
        self.assertEqual(bob.stdout.readline(), "Bob: hello\n")
        bob.stdin.close()
        self.assertEqual([ann.stdout.readline() for _ in range(3)], ["Bob: joins\n", "Bob: hello\n", "Bob: leaves\n"])
        bob.wait(PATIENCE)
        bob.stdin = None


if __name__ == "__main__":
    unittest.main()
