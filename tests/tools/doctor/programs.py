"""Runs the programs of a system and reads the findings of `taut doctor`. Each system has its own network namespace, for its fixed ports.

run.sh sets PROGRAMS (the compiled programs), LIBRARY and BASELINE (folders with libzmq.so.5), TAUT and NODE_PATH. Only the page needs
BASELINE.
"""

import contextlib
import json
import os
import re
import resource
import signal
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
                self.start(role, [keys.get(argument) or self.filled(argument) for argument in arguments])
        return self

    def filled(self, argument):
        """Replaces the words of an argument that stand for values of this run."""
        match argument.split(" "):
            case "PID", role:
                return str(self.processes[role].pid)
            case "PROGRAM", name:
                return str(self.compiled(name))
        return argument.replace("PLACE", str(self.place))

    def compiled(self, name):
        return Path(os.environ["PROGRAMS"]) / self.system.folder / name

    def start(self, role, arguments):
        source = HERE / "systems" / self.system.folder / role.file
        interpreted = {".py": [sys.executable, source], ".js": ["node", source]}.get(source.suffix)
        command = interpreted or [self.compiled(role.file)]
        if role.hides:
            folder = Path(self.filled(role.hides))
            folder.mkdir(exist_ok=True)
            if self.broken:
                # unshare, sh and the program have the same process number.
                command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', folder, *command]
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
            # Programs may start others, which end with them.
            start_new_session=True,
        )

    def works(self, word="working"):
        """Waits until the witness of the system prints `working`."""
        line = self.processes[self.system.witness].stdout.readline()
        assert line == f"{word}\n".encode(), f"{self.system.witness} said {line!r}"

    def observed(self):
        """Waits until all programs can be observed."""
        for role in self.system.roles:
            if role.observed and (process := self.processes.get(role.name)):
                while not (self.place / "tautline" / str(process.pid)).exists():
                    self.runs(role.name)
                    time.sleep(0.05)

    def runs(self, role):
        assert self.processes[role].poll() is None, f"{role} has ended"

    def reaches(self, role, kind, field, number):
        """Waits until a counter of the sockets of one type, or of their endpoints, has this number."""
        while self.counter(role, kind, field) < number:
            self.runs(role)
            time.sleep(0.1)

    def counter(self, role, kind, field):
        reading = self.reading(self.processes[role].pid)
        sockets = [socket for socket in reading.get("sockets", []) if socket["type_name"] == kind]
        of_endpoints = [end for end in reading.get("endpoints", []) if any(end["socket"] == socket["id"] for socket in sockets)]
        return sum(one.get(field, 0) for one in (*sockets, *of_endpoints))

    def reading(self, process):
        """Returns the counters of a process. Empty if it has none."""
        done = subprocess.run([*self.enter, TAUT, "show", "--json", str(process)], env=self.environment, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 else {}

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
        return self.doctor("--for", f"{lasting}s", *([str(process)] if process else []))

    def doctor(self, *options):
        """Returns the findings of `taut doctor` with these options, each with its role. The role of a child is its program."""
        command = [*self.enter, TAUT, "doctor", "--json", *options]
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        roles = {process.pid: role for role, process in self.processes.items()}
        # The folder of the run contains the name of the system, which would match as a word.
        lines = done.stdout.replace(str(self.place), "").splitlines()
        found = [{**hint, "role": roles.get(hint["pid"], hint["program"])} for hint in map(json.loads, lines)]
        has_faults = any(hint["level"] != "note" for hint in found)
        assert done.returncode == 4 * has_faults and not done.stderr, f"taut doctor: {done.returncode}: {done.stderr}"
        return found

    def __exit__(self, *_):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes.values():
            process.wait()
        # pytest shows this output if the case fails.
        self.log.seek(0)
        print(self.log.read()[-2000:].decode(errors="replace"))
        self.log.close()


def new_keys():
    import zmq

    keys = (*zmq.curve_keypair(), *zmq.curve_keypair())
    return dict(zip(("PUBLIC", "SECRET", "OTHER-PUBLIC", "OTHER-SECRET"), (key.decode() for key in keys)))


def says(hint, role, rule, pattern):
    return (hint["role"], hint["rule"]) == (role, rule) and re.search(pattern, words_of(hint), re.DOTALL) is not None


def words_of(hint):
    return f"{hint['what']} ({hint['evidence']}). {hint['advice']}"
