"""The pager test: broken systems of real programs, and what `taut doctor` says of them. Called by run.sh.

    pager.py run NAME TAUT LIBRARY RESULT     one system, broken and healthy; with WRITE=1 on libzmq, too
    pager.py report RESULT...                 counts, prints and writes docs/results/pager.md

`run` is alone in a network: its programs have fixed ports, and what `ss` shows is theirs. Where something has to come about, it is
looked for until it is there. What hangs is ended by the time limit that run.sh gives, and has failed.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from systems import SYSTEMS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
# How long a healthy system is looked at: longer than any rule waits before it says something.
HEALTHY_SECONDS = 14
# How often the picture from outside is taken, and with which pause.
PICTURES, PAUSE, LAST = 16, 0.5, 4


class Run:
    """A system that is running."""

    def __init__(self, system, place, library, keys, broken):
        self.system, self.place, self.library, self.broken = system, place, library, broken
        self.keys = keys
        self.processes = {}
        self.log = open(place / "log", "wb")
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(place), PYTHONUNBUFFERED="1")
        self.environment["NODE_PATH"] = os.environ["PAGER_NODE"]

    def __enter__(self):
        for role in self.system.roles:
            arguments = role.broken if self.broken else role.healthy
            if arguments is not None:
                self.start(role, [self.keys.get(argument, argument) for argument in arguments])
        return self

    def start(self, role, arguments):
        source = HERE / "systems" / self.system.folder / role.name
        interpreted = {".py": [sys.executable, source], ".js": ["node", source]}.get(source.suffix)
        command = interpreted or [Path(os.environ["PAGER_PROGRAMS"]) / self.system.folder / role.name]
        environment = dict(self.environment)
        if self.library:
            environment["TAUT_OBSERVE"] = "1"
            environment["LD_LIBRARY_PATH"] = str(self.library)
            if interpreted:
                environment["LD_PRELOAD"] = str(self.library / "libzmq.so.5")
        else:
            environment["LD_LIBRARY_PATH"] = os.environ["PAGER_LIBZMQ"]
        few = role.files if self.broken else 0

        def limit():
            if few:
                resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))

        self.processes[role.name] = subprocess.Popen(
            [*command, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if role.name == self.system.witness else self.log,
            stderr=self.log,
            preexec_fn=limit,
        )

    def works(self):
        """Waits until the system does its work."""
        line = self.processes[self.system.witness].stdout.readline()
        if line != b"working\n":
            raise AssertionError(f"{self.system.witness} said {line!r}:\n{(self.place / 'log').read_text()[-2000:]}")

    def observed(self):
        """Waits until all of its programs show themselves."""
        for process in self.processes.values():
            while not (self.place / "tautline" / str(process.pid)).exists():
                if process.poll() is not None:
                    raise AssertionError(f"{process.args} has ended:\n{(self.place / 'log').read_text()[-2000:]}")
                time.sleep(0.05)

    def make_broken(self):
        if self.broken and self.system.breaks:
            self.works()
            self.signal()

    def signal(self):
        """What breaks it, if that is a signal. One that comes while the program does not wait in a system call interrupts nothing."""
        if self.broken and self.system.breaks:
            role, which = self.system.breaks
            self.processes[role].send_signal(which)

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.log.close()


def keys():
    import zmq

    (public, secret), (other, _) = zmq.curve_keypair(), zmq.curve_keypair()
    return {"SECRET": secret.decode(), "PUBLIC": public.decode(), "OTHER-PUBLIC": other.decode()}


def findings(run, taut, lasting, process=None):
    """What `taut doctor` finds, with the role that each is about."""
    command = [taut, "doctor", "--json", "--for", f"{lasting}s", *([str(process)] if process else [])]
    done = subprocess.run(command, env=run.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 4) or done.stderr:
        raise AssertionError(f"taut doctor: {done.returncode}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    roles = {process.pid: role for role, process in run.processes.items()}
    for hint in found:
        hint["role"] = roles.get(hint["pid"], "?")
    return found


def words(hint):
    return f"{hint['what']} ({hint['evidence']}). {hint['advice']}"


def says(hint, role, rule, pattern):
    return (hint["role"], hint["rule"]) == (role, rule) and re.search(pattern, words(hint), re.DOTALL) is not None


def is_cause(system, hint):
    return says(hint, system.where, system.rule, system.words)


def diagnose(run, taut):
    """Looks until the cause is what is said first; what was said then. For as long as run.sh lets it."""
    run.observed()
    run.make_broken()
    rounds = 0
    while True:
        found = findings(run, taut, 3)
        rounds += 1
        also = not run.system.also or any(says(hint, *run.system.also) for hint in found)
        if found and is_cause(run.system, found[0]) and also:
            # Asked about that process alone it is the first word, too.
            alone = findings(run, taut, 3, run.processes[run.system.where].pid)
            if alone and is_cause(run.system, alone[0]):
                return {"rounds": rounds, "found": alone[:1] + found[1:]}
        run.signal()
        (run.place.parent / "last").write_text("\n".join(f"{hint['role']}: {hint['rule']}: {words(hint)}" for hint in found))


def outside(run):
    """What can be seen of the programs without them."""
    run.make_broken()
    if not run.broken:
        run.works()
    pictures = []
    for _ in range(PICTURES):
        pictures.append(picture(run))
        time.sleep(PAUSE)
        run.signal()
    seen = {"listening": max(len(one["listening"]) for one in pictures)}
    ends = set().union(*(one["connections"] for one in pictures))
    seen["connections"] = max(len(one["connections"]) for one in pictures)
    seen["come and go"] = len(ends) - seen["connections"]
    for queue in ("receive", "send"):
        # What is there in each of the last pictures is no traffic that passes.
        least = {role: min(one[queue].get(role, 0) for one in pictures[-LAST:]) for role in run.processes}
        seen[queue] = {role: amount for role, amount in least.items() if amount > 0}
    seen["files"] = {role: max(one["files"].get(role, 0) for one in pictures) for role in run.processes}
    seen["limits"] = {role.name: role.files for role in run.system.roles if role.files and run.broken}
    seen["stopped"] = sorted(set().union(*(one["stopped"] for one in pictures)))
    return seen


def picture(run):
    now = {"listening": set(), "connections": set(), "receive": {}, "send": {}, "files": {}, "stopped": set()}
    roles = {process.pid: role for role, process in run.processes.items()}
    shown = subprocess.run(["ss", "-tanpH"], capture_output=True, text=True, check=True).stdout
    for line in shown.splitlines():
        state, receive, send, local, remote, *users = line.split()
        pids = [int(pid) for pid in re.findall(r"pid=(\d+)", " ".join(users))]
        role = next((roles[pid] for pid in pids if pid in roles), None)
        if state == "LISTEN" and role:
            now["listening"].add(local)
        elif state == "ESTAB":
            now["connections"].add(tuple(sorted((local, remote))))
            if role:
                now["receive"][role] = now["receive"].get(role, 0) + int(receive)
                now["send"][role] = now["send"].get(role, 0) + int(send)
    for pid, role in roles.items():
        try:
            now["files"][role] = len(os.listdir(f"/proc/{pid}/fd"))
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
                now["stopped"].add(role)
        except FileNotFoundError:
            pass
    return now


def run(name, taut, library, result):
    system = next(system for system in SYSTEMS if system.name == name)
    with tempfile.TemporaryDirectory(prefix="pager.") as folder:
        told = {"name": name}
        result = Path(result)

        def begin(library, broken):
            place = Path(folder) / f"{'tautline' if library else 'libzmq'}-{'broken' if broken else 'healthy'}"
            place.mkdir(mode=0o700)
            return Run(system, place, library and Path(library), keys(), broken)

        def note(key, value):
            told[key] = value
            result.write_text(json.dumps(told))

        with begin(library, False) as healthy:
            healthy.observed()
            healthy.works()
            note("healthy", findings(healthy, taut, HEALTHY_SECONDS))
        if os.environ.get("WRITE") == "1":
            with begin(None, False) as healthy:
                note("outside healthy", outside(healthy))
            with begin(None, True) as broken:
                note("outside broken", outside(broken))
        with begin(library, True) as broken:
            try:
                note("broken", diagnose(broken, taut))
            except (KeyboardInterrupt, SystemExit):
                note("last", (Path(folder) / "last").read_text() if (Path(folder) / "last").exists() else "nothing")
                raise


def main():
    # The time limit: what was found until then is written down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if sys.argv[1] == "run":
        run(*sys.argv[2:])
    else:
        import report

        report.report(sys.argv[2:])


main()
