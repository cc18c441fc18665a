"""Runs the programs of a system and reads the findings of `taut doctor`. Each system has its own network namespace, for its fixed ports.

run.sh sets PROGRAMS (the compiled programs), LIBRARY and BASELINE (folders with libzmq.so.5), TAUT and NODE_PATH. Only the page needs
BASELINE.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

LIBRARY, TAUT = os.environ["LIBRARY"], os.environ["TAUT"]
HERE = Path(__file__).resolve().parent


class Run:
    """A running system. `enter` is the command that runs a program in its network. Without `ours` the programs use libzmq 4.3.5."""

    def __init__(self, system, place, enter, broken, ours=True):
        self.system, self.place, self.enter, self.broken, self.ours = system, place, enter, broken, ours
        self.processes = {}
        self.log = open(place / "log", "w+b")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(place), "TAUT_COUNTERS": str(place / "tautline"), "PYTHONUNBUFFERED": "1"}

    def __enter__(self):
        keys = new_keys()
        for role in self.system.roles:
            arguments = role.broken if self.broken else role.healthy
            if arguments is not None:
                self.start(role, [keys.get(argument, argument) for argument in arguments])
        return self

    def start(self, role, arguments):
        source = HERE / "systems" / self.system.folder / role.name
        interpreted = {".py": [sys.executable, source], ".js": ["node", source]}.get(source.suffix)
        command = interpreted or [Path(os.environ["PROGRAMS"]) / self.system.folder / role.name]
        environment = {**self.environment, "LD_LIBRARY_PATH": LIBRARY if self.ours else os.environ["BASELINE"]}
        if self.ours:
            environment["TAUT_OBSERVE"] = "1"
            if interpreted:
                environment["LD_PRELOAD"] = f"{LIBRARY}/libzmq.so.5"
        few = role.files if self.broken else 0

        def limit():
            if few:
                resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

        self.processes[role.name] = subprocess.Popen(
            [*self.enter, *command, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if role.name == self.system.witness else self.log,
            stderr=self.log,
            preexec_fn=limit,
        )

    def works(self):
        """Waits until the witness of the system prints `working`."""
        line = self.processes[self.system.witness].stdout.readline()
        assert line == b"working\n", f"{self.system.witness} said {line!r}"

    def observed(self):
        """Waits until all programs can be observed."""
        for role, process in self.processes.items():
            while not (self.place / "tautline" / str(process.pid)).exists():
                assert process.poll() is None, f"{role} has ended"
                time.sleep(0.05)

    def signal(self):
        """Sends the signal that breaks the system, if any. Callers repeat it, because a signal takes effect only during a system call."""
        if self.broken and self.system.breaks:
            role, which = self.system.breaks
            self.processes[role].send_signal(which)

    def make_broken(self):
        if self.broken and self.system.breaks:
            self.works()
            self.signal()

    def findings(self, lasting, process=None):
        """Returns the findings of `taut doctor`, each with the role of its process."""
        command = [*self.enter, TAUT, "doctor", "--json", "--for", f"{lasting}s", *([str(process)] if process else [])]
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode in (0, 4) and not done.stderr, f"taut doctor: {done.returncode}: {done.stderr}"
        roles = {process.pid: role for role, process in self.processes.items()}
        return [{**hint, "role": roles.get(hint["pid"], "?")} for hint in map(json.loads, done.stdout.splitlines())]

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        # pytest shows this output if the case fails.
        self.log.seek(0)
        print(self.log.read()[-2000:].decode(errors="replace"))
        self.log.close()


def new_keys():
    import zmq

    (public, secret), (other, _) = zmq.curve_keypair(), zmq.curve_keypair()
    return {"SECRET": secret.decode(), "PUBLIC": public.decode(), "OTHER-PUBLIC": other.decode()}


def says(hint, role, rule, pattern):
    words = f"{hint['what']} ({hint['evidence']}). {hint['advice']}"
    return (hint["role"], hint["rule"]) == (role, rule) and re.search(pattern, words, re.DOTALL) is not None
