"""Runs the processes of the soak: soak.py PROGRAM FOLDER SECONDS

Starts the staying processes. For the given time it starts, ends and kills the other processes. It checks all the time that
each staying process makes progress, and that its descriptors and memory do not grow. A process that ends by itself with an
error is a failure. Prints one line a minute and `soak: N passed, N failed, 0 skipped`.
"""

import contextlib
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

STALL_S = 120  # longest time without progress of a staying process
FD_LIMIT = 300  # more than all connections of all peers need at the same time
MEMORY_GROWTH = 96 << 20  # after the warm-up: the fill of queues varies, but memory must not grow steadily

STAYING = ("sink", "echo", "publisher", "churn")
COMING_AND_GOING = ("restarting-sink", "source", "source", "source", "asker", "asker", "subscriber", "subscriber")


class Role:
    """A process of a role. It is started again after a kill."""

    def __init__(self, soak, name, index):
        self.soak, self.name = soak, name
        self.status = soak.folder / f"{name}-{index}.status"
        self.log = soak.folder / f"{name}-{index}.log"
        self.rounds = 0
        self.total = 0
        self.memory_before = None
        self.start()

    def start(self):
        self.status.unlink(missing_ok=True)
        command = [self.soak.program, self.name, self.status, str(self.soak.random.getrandbits(48))]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command + self.soak.endpoints(self.name), stderr=log)
        self.started = self.moved = time.monotonic()
        self.last = 0

    def done(self):
        try:
            return int(self.status.read_text() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def kill(self):
        self.total += self.done()
        self.process.kill()
        self.process.wait()
        self.rounds += 1
        self.start()

    def stop(self):
        self.total += self.done()
        self.process.send_signal(signal.SIGTERM)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self):
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def fault(self, warm):
        """Returns the current fault of this process, or None."""
        try:
            return self.look(warm)
        except OSError:  # the process has ended, and /proc lacks it
            code = self.process.wait(STALL_S)
            return f"ended by itself with {code}: {self.tail()}"

    def look(self, warm):
        if self.process.poll() is not None:
            return f"ended by itself with {self.process.returncode}: {self.tail()}"
        now, done = time.monotonic(), self.done()
        if done != self.last:
            self.last, self.moved = done, now
        if self.name not in STAYING:
            return None
        if now - self.moved > STALL_S:
            return f"no progress for {STALL_S} s after {done}"
        if self.descriptors() > FD_LIMIT:
            return f"{self.descriptors()} descriptors"
        if warm and self.memory_before is None:
            self.memory_before = self.memory()
        if warm and self.memory() > self.memory_before + MEMORY_GROWTH:
            return f"{self.memory() >> 20} MiB of memory, {self.memory_before >> 20} after the warm-up"
        return None

    def tail(self):
        return self.log.read_text(errors="replace")[-300:].strip()


def free_ports():
    """Yields free ports of 127.0.0.1 below the range of connecting sockets, so that a restarted server can bind its port
    again."""
    first = 20_000 + os.getpid() % 12_000
    for port in itertools.chain(range(first, 32_000), range(20_000, first)):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            yield port


class Soak:
    def __init__(self, program, folder, seconds):
        self.program, self.folder, self.seconds = program, pathlib.Path(folder), seconds
        self.random = random.Random(1)
        ports = dict(zip(("sink", "restarting-sink", "echo", "publisher"), free_ports()))
        self.bound = {
            name: [f"tcp://127.0.0.1:{port}", f"ipc://{self.folder}/{name}.ipc"] for name, port in ports.items()
        }
        names = STAYING + COMING_AND_GOING
        self.roles = [Role(self, name, index) for index, name in enumerate(names)]
        self.faults = []

    def endpoints(self, name):
        serving = {"source": ("sink", "restarting-sink"), "asker": ("echo",), "subscriber": ("publisher",)}
        serving = serving.get(name, (name,))
        return [endpoint for server in serving for endpoint in self.bound.get(server, ["unused"])]

    def run(self):
        started = time.monotonic()
        warm_up = min(60.0, self.seconds / 4)
        next_line = 60
        while (elapsed := time.monotonic() - started) < self.seconds and not self.faults:
            time.sleep(self.random.uniform(0.02, 0.2))
            self.look(elapsed > warm_up)
            victim = self.random.choice([role for role in self.roles if role.name not in STAYING])
            # Most processes are killed soon after their start, while they connect and shake hands.
            if self.random.random() < 0.5 and not self.faults:
                victim.kill()
            if elapsed > next_line:
                print(self.line(elapsed), flush=True)
                next_line += 60
        self.end()
        print(self.line(time.monotonic() - started), flush=True)
        for fault in self.faults:
            print(f"FAILED {fault}")
        failed = min(len(self.faults), len(self.roles))
        print(f"soak: {len(self.roles) - failed} passed, {failed} failed, 0 skipped")
        return 1 if failed else 0

    def look(self, warm):
        for role in self.roles:
            if fault := role.fault(warm):
                self.faults.append(f"{role.name}: {fault}")

    def end(self):
        """Ends all processes with SIGTERM: first the connecting ones, then the binding ones."""
        for group in (lambda role: role.name not in STAYING, lambda role: role.name in STAYING):
            members = [role for role in self.roles if group(role)]
            for role in members:
                role.stop()
            for role in members:
                try:
                    code = role.process.wait(STALL_S)
                    if code not in (0, -signal.SIGTERM) and not self.faults:
                        self.faults.append(f"{role.name}: ended with {code}: {role.tail()}")
                except subprocess.TimeoutExpired:
                    role.process.kill()
                    self.faults.append(f"{role.name}: did not end when asked to")

    def line(self, elapsed):
        counts = {}
        for role in self.roles:
            counts[role.name] = counts.get(role.name, 0) + role.total + (role.done() if role.process.poll() is None else 0)
        killed = sum(role.rounds for role in self.roles)
        return f"{elapsed:6.0f} s, {killed} killed; " + ", ".join(f"{name} {count}" for name, count in counts.items())


if __name__ == "__main__":
    soak = Soak(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    try:
        code = soak.run()
    finally:
        for role in soak.roles:
            role.process.kill()
    sys.exit(code)
