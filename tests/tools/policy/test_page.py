"""Follows docs/operate/security.md as a reader would: writes its files, runs its commands in one shell, and compares their output.

A `python` or `toml` block that begins with a file name in a comment becomes a file. A `console` block has commands and their output. In the
output, a line `...` matches any number of lines. A number in parentheses matches any process id, and a word of 40 characters any key.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest
from programs import LIBRARY, TAUT

PAGE = pathlib.Path(__file__).parents[3] / "docs/operate/security.md"
# Milliseconds that desk.py waits for an answer: in the text of the page, if the page expects an answer, and if it expects a timeout.
PATIENCE, WITH_ANSWER, WITHOUT = "5000", "120000", "1500"


def steps():
    """Yields the files (name and text) and commands (command and expected lines) of the page in order."""
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        name = re.match(r"# (\S+)\n", block)
        if language in ("python", "toml") and name:
            yield "file", name[1], block
        elif language == "console":
            for command in re.split(r"^\$ ", block, flags=re.M)[1:]:
                first, *expected = command.splitlines()
                yield "command", first, expected


STEPS = list(steps())
COMMANDS = [at for at, step in enumerate(STEPS) if step[0] == "command"]


class Reader:
    """A shell in its own folder, with the folders and programs that the page assumes."""

    def __init__(self, folder):
        self.folder, self.done = folder, []
        for name in ("work", "etc", "lib"):
            (folder / name).mkdir()
        (folder / "lib/libzmq.so.5").symlink_to(LIBRARY)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_")}
        environment["PATH"] = f"{pathlib.Path(TAUT).parent}:{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
        # The shell has its own session. `end` kills that session with all programs that the shell started.
        self.shell = subprocess.Popen(
            ["bash", "--norc"], cwd=folder / "work", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )

    def here(self, text):
        """Returns text of the page with the folders and ports of this run."""
        text = text.replace("/etc/tautline", f"{self.folder}/etc").replace("/usr/local/lib", f"{self.folder}/lib")
        return text.replace("5555", str(self.port)).replace("5556", str(self.port + 1))

    def printed(self, at):
        """Executes the page up to this step. Returns the output lines of this step's command."""
        while len(self.done) <= at:
            kind, what, rest = STEPS[len(self.done)]
            if kind == "file":
                text = self.here(rest).replace(f"poll({PATIENCE})", "poll(int(__import__('os').environ['PATIENCE']))")
                (self.folder / "work" / self.here(what)).write_text(text, encoding="utf-8")
                self.done.append([])
            else:
                self.run(f"export PATIENCE={WITHOUT if rest == ['no answer'] else WITH_ANSWER}")
                self.done.append(self.run(self.here(what)))
        return self.done[at]

    def run(self, command):
        """Runs a command. Waits until a background command listens or has ended."""
        mark = "--done--"
        wait = ""
        if command.endswith("&"):
            # 0A is the TCP state LISTEN.
            listens = f"awk '$4 == \"0A\" {{print $2}}' /proc/net/tcp | grep -q ':{self.port:04X}$'"
            wait = f"until {listens}; do kill -0 $! 2>/dev/null || break; sleep 0.02; done\n"
        elif command.startswith("kill"):
            wait = "wait $! 2>/dev/null\n"
        self.shell.stdin.write(f"{command}\n{wait}echo; echo {mark}\n")
        self.shell.stdin.flush()
        return [line for line in map(str.rstrip, iter(self.shell.stdout.readline, f"{mark}\n")) if line]

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.communicate()


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    reader = Reader(tmp_path_factory.mktemp("page"))
    yield reader
    reader.end()


def pattern(line):
    """Returns the pattern that output must match for this line of the page."""
    text = re.escape(line)
    text = re.sub(r"\\\(\d+\\\)", r"\\(\\d+\\)", text)
    text = re.sub(r"python3\\\.\d+", r"python3(\\.\\d+)?", text)
    return re.sub(r"(?<=key\\ is\\ )(?:\\.|[^\\]){40}", r"\\S{40}", text)


def slug(at):
    return f"{COMMANDS.index(at) + 1}-" + re.sub(r"\W+", "-", STEPS[at][1]).strip("-")[:40]


@pytest.mark.parametrize("at", COMMANDS, ids=slug)
def test_page(reader, at):
    _, command, expected = STEPS[at]
    found = reader.printed(at)
    wanted = "".join(r"(?:.*\n)*" if line == "..." else pattern(reader.here(line)) + "\n" for line in expected)
    assert re.fullmatch(wanted, "".join(line + "\n" for line in found)), [command, expected, found]
