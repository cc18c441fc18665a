"""The programs in the pages about Python run, and print what the pages show."""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import unittest

from native_support import PATIENCE, run_program
from tautline_zmq import DEALER, Context
from test_native_examples import ENVIRONMENT

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class DocsTest(unittest.TestCase):
    def programs(self, page):
        with open(os.path.join(DOCS, page), encoding="utf-8") as file:
            text = file.read()
        found = BLOCK.findall(text)
        self.assertEqual(len(found), text.count("```python"))
        return found

    def check(self, page):
        for source, expected in self.programs(page):
            if source.startswith("# service.py") or source.startswith("# client.py"):
                continue
            packages = [name for name in ("anyio", "pyarrow") if f"import {name}" in source]
            if any(importlib.util.find_spec(name) is None for name in packages):
                continue
            with self.subTest(page=page, source=source):
                self.assertEqual(run_program(self, source), expected.strip())

    def test_start(self):
        self.check("start/python.md")

    def test_service_answers_the_client(self):
        for stop in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(stop):
                self.check_service(stop)

    def check_service(self, stop):
        programs = [source for source, _ in self.programs("start/python.md")]
        service = next(source for source in programs if source.startswith("# service.py"))
        client = next(source for source in programs if source.startswith("# client.py"))
        # The port of the page may be in use.
        service = service.replace("127.0.0.1:5599", "127.0.0.1:*")
        command = [sys.executable, "-c", service]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

        # A shell lets background jobs ignore SIGINT, and the service would inherit that.
        def heed():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        with subprocess.Popen(command, **pipes, env=ENVIRONMENT, preexec_fn=heed) as process:
            try:
                endpoint = process.stdout.readline().split()[1]
                self.check_malformed_messages(endpoint)
                output = run_program(self, client.replace("tcp://127.0.0.1:5599", endpoint))
                self.assertEqual(output, "100 answers, the highest is 100")
                process.send_signal(stop)
                output, _ = process.communicate(timeout=PATIENCE)
                self.assertEqual((output, process.returncode), ("ignored a message of 2 parts\nstopped\n", 0))
            finally:
                process.kill()

    def check_malformed_messages(self, endpoint):
        with Context() as context, context.socket(DEALER) as dealer:
            dealer.connect(endpoint)
            dealer.rcvtimeo = PATIENCE * 1000
            dealer.send(b"one part")
            for body in (b"no JSON", b"[]", b"{}", b'{"count": []}'):
                dealer.send_multipart([b"1", body])
                number, reply = dealer.recv_multipart()
                self.assertEqual((number, list(json.loads(reply))), (b"1", ["error"]))

    def test_client_without_a_service_ends(self):
        client = next(source for source, _ in self.programs("start/python.md") if source.startswith("# client.py"))
        # A bound port that does not listen refuses connections.
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            endpoint = "tcp://127.0.0.1:%d" % taken.getsockname()[1]
            client = client.replace("tcp://127.0.0.1:5599", endpoint).replace("5000", "50")
            command = [sys.executable, "-c", client]
            done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        expected = f"recv on DEALER {endpoint}: no message arrived within 50 ms: no peer is connected"
        self.assertEqual(done.stderr.splitlines()[-1], f"tautline_zmq.errors.TimedOut: {expected}")

    def test_asyncio(self):
        self.check("use/python-asyncio.md")

    def test_from_pyzmq(self):
        self.check("use/python-from-pyzmq.md")

    def test_replay(self):
        self.check("use/python-replay.md")


if __name__ == "__main__":
    unittest.main()
