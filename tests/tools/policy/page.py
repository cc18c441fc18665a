"""Follows docs/security.md as a reader would: its files are written, its commands run in one shell, and what they print is compared.

page.py PAGE LIBRARY TAUT FOLDER. Of a page it reads blocks that begin with a comment that is a name, which become files, and
`console` blocks. There a line `...` stands for any number of lines; a number in parentheses (a process) and a word of 40 characters (a key) for
others of their kind. Ends with `page: N passed, N failed, N skipped`, where each command is one.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading

PAGE, LIBRARY, TAUT, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
# Against hangs only.
WATCHDOG_S = 300
# What desk.py waits for an answer: where there is one, until it comes; elsewhere, not for long.
PATIENCE, WITH_ANSWER, WITHOUT = "5000", "120000", "1500"


def blocks(text):
    """Language and lines of each block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Shell:
    """A shell in a folder of its own, with what the page takes for granted."""

    def __init__(self, folder):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAUT_") and name != "LD_PRELOAD"}
        environment["PATH"] = f"{TAUT.parent}:{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
        # Its own session, so that what it has started can be ended with it.
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )

    def run(self, command, port):
        """What a command has printed. One in the background is waited for until it listens, or has ended."""
        mark = "--done--"
        # 0A is LISTEN.
        listening = f"awk '$4 == \"0A\" {{print $2}}' /proc/net/tcp | grep -q ':{port:04X}$'"
        wait = f"until {listening}; do kill -0 $! 2>/dev/null || break; done\n" if command.endswith("&") else ""
        if command.startswith("kill"):
            wait = "wait $! 2>/dev/null\n"
        self.process.stdin.write(f"{command}\n{wait}echo; echo {mark}\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.strip() == mark:
                break
            lines.append(line.rstrip("\n"))
        return [line for line in lines if line]

    def end(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()


def pattern(line):
    """What a line of the page fits."""
    text = re.escape(line)
    text = re.sub(r"\\\(\d+\\\)", r"\\(\\d+\\)", text)
    text = re.sub(r"python3\\\.\d+", r"python3(\\.\\d+)?", text)
    return re.sub(r"(?<=key\\ is\\ )(?:\\.|[^\\]){40}", r"\\S{40}", text)


def fits(expected, found):
    """Whether lines are those of the page."""
    wanted = "".join(r"(?:.*\n)*" if line == "..." else pattern(line) + "\n" for line in expected)
    return re.fullmatch(wanted, "".join(line + "\n" for line in found)) is not None


def commands(block):
    """Commands of a block, each with the lines that are expected."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("work", "etc", "lib"):
        (FOLDER / name).mkdir(parents=True)
    (FOLDER / "lib" / "libzmq.so.5").symlink_to(LIBRARY)
    port = free_port()

    def ours(text):
        text = text.replace("/etc/tautline", str(FOLDER / "etc")).replace("/usr/local/lib", str(FOLDER / "lib"))
        return text.replace("5555", str(port)).replace("5556", str(port + 1))

    shell = Shell(FOLDER / "work")
    watchdog = threading.Timer(WATCHDOG_S, shell.end)
    watchdog.daemon = True
    watchdog.start()
    passed = failed = 0
    for language, block in blocks(PAGE.read_text(encoding="utf-8")):
        named = re.match(r"# (\S+)\n", block)
        if language in ("python", "toml") and named:
            path = FOLDER / "work" / ours(named[1])
            text = ours(block).replace(f"poll({PATIENCE})", "poll(int(__import__('os').environ['PATIENCE']))")
            path.write_text(text, encoding="utf-8")
        for command, expected in commands(block) if language == "console" else ():
            shell.run(f"export PATIENCE={WITHOUT if expected == ['no answer'] else WITH_ANSWER}", port)
            found = shell.run(ours(command), port)
            if fits([ours(line) for line in expected], found):
                passed += 1
                continue
            failed += 1
            print(f"FAILED $ {command}", "expected:", *expected, "found:", *found, sep="\n    ", flush=True)
    watchdog.cancel()
    shell.end()
    print(f"page: {passed} passed, {failed} failed, 0 skipped")
    return failed != 0 or passed == 0


sys.exit(main())
