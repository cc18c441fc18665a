"""The programs in the pages about Python run, and print what the pages show."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

from native_support import run_program
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
            if "import anyio" in source and importlib.util.find_spec("anyio") is None:
                continue
            with self.subTest(page=page, source=source):
                self.assertEqual(run_program(self, source), expected.strip())

    def test_start(self):
        self.check("start/python.md")

    def test_service_answers_the_client(self):
        programs = [source for source, _ in self.programs("start/python.md")]
        service = next(source for source in programs if source.startswith("# service.py"))
        client = next(source for source in programs if source.startswith("# client.py"))
        # The port of the page may be in use.
        service = service.replace("127.0.0.1:5599", "127.0.0.1:*")
        command = [sys.executable, "-c", service]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT) as process:
            try:
                endpoint = process.stdout.readline().split()[1]
                output = run_program(self, client.replace("tcp://127.0.0.1:5599", endpoint))
                self.assertEqual(output, "100 answers, the highest is 100")
            finally:
                process.kill()

    def test_asyncio(self):
        self.check("use/python-asyncio.md")

    def test_from_pyzmq(self):
        self.check("use/python-from-pyzmq.md")

    def test_replay(self):
        self.check("use/python-replay.md")


if __name__ == "__main__":
    unittest.main()
