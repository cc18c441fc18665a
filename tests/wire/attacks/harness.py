"""Common parts of all attacks: cases, the victim and its good client (victim.c), and the attacker.

A case is a function that gets an `Attack` and attacks `attack.endpoint` in its own process. `@case`
has the settings of the victim, and the limits of its losses. As a test an attack ends by itself. The
test asserts limits of memory, of descriptors and of bytes, and that good clients get answers. As a
benchmark an attack continues until it is stopped.
"""

import ctypes
import importlib
import mmap
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import subprocess
import sys

import zmtp

MIB = 1 << 20
# Memory that a process may use in each case: caches of its threads for the next messages, and the needs of two
# honest connections.
ALLOWANCE = 8 * MIB
# Bytes that an attack tries to send. A victim that stores all of them exceeds its limits.
VOLUME = 96 * MIB
# A victim that takes no bytes for this time counts as not reading. If it was only slow, the attack is slightly
# weaker.
STALL_S = 0.4


def most_buffered():
    """Returns the bytes of one stream that the system may hold, which is the largest size of both ends' buffers."""

    def most(name):
        return int(pathlib.Path(f"/proc/sys/net/ipv4/{name}").read_text(encoding="utf-8").split()[2])

    return most("tcp_wmem") + most("tcp_rmem")


BUFFERED = most_buffered()
CASES = []


def load():
    """Registers the attacks of the folder `cases`, and returns all cases."""
    for file in sorted(pathlib.Path(__file__).parent.glob("cases/*.py")):
        importlib.import_module(f"cases.{file.stem}")
    return CASES


class Cores:
    """Processor cores of the programs. With `apart`, the good client and the thread that answers it have one core. The attacker and
    the victim's other threads have another core."""

    def __init__(self, apart):
        cores = sorted(os.sched_getaffinity(0))
        if apart and len(cores) < 2:
            raise SystemExit("APART needs two cores")
        self.good, self.attacked = ({cores[0]}, {cores[1]}) if apart else (set(cores), set(cores))

    def place(self, pid, attacked):
        """Assigns all threads of a process to their cores. An attacked process has one good thread."""
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            good = not attacked or (task / "comm").read_text(encoding="utf-8") == "good\n"
            os.sched_setaffinity(int(task.name), self.good if good else self.attacked)


CORES = Cores(apart=os.environ.get("APART", "0") != "0")

# Options of the victim with limits that a program must set, because these resources are unlimited by default.
# High-water marks also bound an attack by default. The attacks use lower marks.
LIMITS = {
    "wide=22": "ZMQ_MAXMSGSIZE",
    f"wide={0x54410003}": "ZMQ_TAUTLINE_MAXMULTIPARTSIZE",
    f"wide={0x54410010}": "ZMQ_TAUTLINE_MAX_SUBSCRIPTIONS",
}


class Case:
    """An attack, the settings of its victim, and the limits of the victim's losses."""

    def __init__(self, attack, name, **settings):
        self.attack, self.name = attack, name
        # Limits: memory beyond ALLOWANCE, descriptors beyond the good client's, and bytes read from the attacker.
        # `None` means any number.
        self.memory = settings.pop("memory", 0)
        self.descriptors = settings.pop("descriptors", None)
        self.swallowed = settings.pop("swallowed", None)
        # Endpoint that the victim connects to, if any. ADDRESS stands for the attacker's address.
        self.serves = settings.pop("serves", None)
        # The victim's resource limits, by the names of RLIMIT_*.
        self.limits = settings.pop("limits", {})
        # The victim's [limits] of a policy (docs/operate/policy.md), which libzmq does not know.
        self.policy = settings.pop("policy", {})
        # True if the victim can serve a later client, and true if it can serve any client.
        self.newcomer = settings.pop("newcomer", True)
        self.answers = settings.pop("answers", True)
        # Command for a victim in mode idle, sent after the attack, for example `look 1000`.
        self.then = settings.pop("then", None)
        # True if this system has the features that the attacker needs.
        self.needs = settings.pop("needs", lambda: True)
        self.options = settings.pop("options", [])
        # Names of the limits that bound the attack: the defaults, or limits that a program or a policy sets.
        self.bound = settings.pop("bound", None) or self.set_limits() or "defaults"
        self.security = settings.get("security", "null")
        self.settings = settings

    def set_limits(self):
        options = [LIMITS[option.split(":")[0]] for option in self.options if option.split(":")[0] in LIMITS]
        return ", ".join(options + [f"policy `{name}`" for name in self.policy])


def case(name, **settings):
    """Registers an attack. `Case` uses its own settings, and victim.c gets all other settings."""

    def register(attack):
        CASES.append(Case(attack, name, **settings))
        return attack

    return register


class Attack:
    """The attacker's side, in its own process. `limited` is true in a test, and false in a benchmark."""

    def __init__(self, endpoint, listener, limited, board, folder):
        self.endpoint, self.listener, self.limited, self.board, self.folder = endpoint, listener, limited, board, folder
        self.kept = []

    def connect(self, receive_buffer=None):
        """Returns a new stream, which stays open until the end of the attack."""
        stream = zmtp.connect(self.endpoint, receive_buffer)
        self.kept.append(stream)
        self.count(connections=1)
        return stream

    def accept(self):
        """Accepts the next stream of a connecting victim."""
        stream = self.listener.accept()[0]
        stream.settimeout(zmtp.TIMEOUT_S)
        self.kept.append(stream)
        self.count(connections=1)
        return stream

    def drop(self, stream):
        """Resets a stream, so that it leaves no state in the system."""
        self.kept.remove(stream)
        if stream.family == socket.AF_INET:
            zmtp.reset_on_close(stream)
        stream.close()

    def ended(self, stream):
        """Reads and discards bytes until the other end closes the stream."""
        stream.settimeout(None)
        try:
            while stream.recv(1 << 16):
                pass
        except ConnectionError:
            pass

    def times(self, count):
        """Yields numbers: `count` of them in a test, without end in a benchmark."""
        done = 0
        while not self.limited or done < count:
            yield done
            done += 1

    def rounds(self, count=1):
        """Yields like `times`, and drops the streams of a round after it."""
        for number in self.times(count):
            kept = len(self.kept)
            yield number
            while len(self.kept) > kept:
                self.drop(self.kept[-1])

    def count(self, swallowed=0, connections=0):
        was = struct.unpack_from("QQ", self.board)
        struct.pack_into("QQ", self.board, 0, was[0] + swallowed, was[1] + connections)

    def flood(self, streams, chunk, volume=None):
        """Sends `chunk` repeatedly over each stream until all streams have ended, or `volume` bytes are sent.

        In a test it also returns if the other end stops reading, or VOLUME is sent.
        """
        volume = volume or (VOLUME if self.limited else None)
        streams = [streams] if isinstance(streams, socket.socket) else list(streams)
        poll, at, total, view = select.poll(), {}, 0, memoryview(chunk)
        for stream in streams:
            stream.setblocking(False)
            poll.register(stream, select.POLLOUT)
            at[stream.fileno()] = stream, 0
        while at and (volume is None or total < volume):
            ready = poll.poll(STALL_S * 1000)
            if not ready and self.limited:
                break
            for number, _ in ready:
                stream, offset = at[number]
                try:
                    sent = stream.send(view[offset:])
                except BlockingIOError:
                    continue
                except OSError:
                    poll.unregister(number)
                    del at[number]
                    continue
                total += sent
                self.count(swallowed=sent)
                at[number] = stream, (offset + sent) % len(chunk)
        return total


class Attacker:
    """The process of an attack."""

    def __init__(self, case, endpoint, listener, limited, folder):
        self.board = mmap.mmap(-1, 4096)
        self.finished, finish = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                end_with_parent()
                os.sched_setaffinity(0, CORES.attacked)
                # `attack` keeps its streams open until the process ends.
                attack = Attack(endpoint, listener, limited, self.board, folder)
                case.attack(attack)
                os.write(finish, b".")
                while True:
                    signal.pause()
            except BaseException as error:
                print(f"attacker: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os.close(finish)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def wait(self):
        """Waits until the attack is done. Returns False if it failed."""
        return os.read(self.finished, 1) == b"."

    def counts(self):
        """Returns the numbers of bytes that the victim swallowed and of connections."""
        return struct.unpack_from("QQ", self.board)

    def signal(self, number):
        os.kill(self.pid, number)

    def end(self):
        self.signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.finished)


def end_with_parent():
    """Makes the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


class Program:
    """victim.c in one of its roles."""

    def __init__(self, library, program, words, limits=None, policy=None):
        def prepare():
            end_with_parent()
            for name, limit in (limits or {}).items():
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))

        environment = dict(os.environ, LD_LIBRARY_PATH=str(library))
        if policy:
            environment["TAUT_POLICY"] = str(policy)
        self.process = subprocess.Popen(
            [program, *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, preexec_fn=prepare
        )
        self.pid = self.process.pid
        self.ready = self.read().split()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Ended(self.process.wait())
        return line.strip()

    def tell(self, line):
        try:
            self.process.stdin.write(line + "\n")
        except BrokenPipeError:
            raise Ended(self.process.wait()) from None

    def ask(self, line):
        self.tell(line)
        return self.read()

    def end(self):
        """Closes the program's input, waits for its end, and returns the exit code."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()

    # ---- figures of the process from /proc

    def field(self, file, name):
        with open(f"/proc/{self.pid}/{file}", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
        raise KeyError(name)

    def resident(self):
        return self.field("status", "VmRSS")

    def peak(self):
        return max(self.field("status", "VmHWM"), self.resident())

    def reset_peak(self):
        try:
            pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5", encoding="utf-8")
        except OSError:
            pass

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def processor_time(self):
        """Returns the used processor time in seconds."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Ended(Exception):
    """A victim ended unexpectedly. The argument is its exit code, negative for a signal."""

    def __str__(self):
        code = self.args[0]
        return f"the victim ended by {signal.Signals(-code).name}" if code < 0 else f"the victim ended with {code}"


class Unsupported(Exception):
    """The case cannot run on this system. The argument is the reason."""


class Answers:
    """The measurements of a good client, from a line of victim.c."""

    def __init__(self, line):
        if line == "none":
            raise Unanswered
        count, took, *times = map(float, line.split()[1:])
        self.count, self.took = int(count), took
        self.median_ms, self.worst_ms, self.newcomer_ms = (t / 1000 for t in times)


class Unanswered(Exception):
    def __str__(self):
        return "a good client had no answer in a minute"


class Stage:
    """A victim with a good client, and an endpoint to attack."""

    def __init__(self, case, library, program, folder):
        self.listener, self.client, self.folder = None, None, folder
        if not case.needs():
            raise Unsupported("the attacker's library is missing: OpenSSL for TLS, libsodium for CURVE")
        words = [f"{key}={value}" for key, value in {"mode": "idle", **case.settings}.items() if key != "bind"]
        words += case.options
        if case.serves is None:
            bind = case.settings.get("bind", "tcp://127.0.0.1:*")
            words.append(f"bind={bind.replace('FOLDER', str(folder))}")
        else:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
            address = "127.0.0.1:%d" % self.listener.getsockname()[1]
            words += [word.replace("ADDRESS", address) for word in case.serves.split()]
        policy = None
        if case.policy:
            policy = folder / "policy.toml"
            lines = [f"{name} = {value}\n" for name, value in case.policy.items()]
            policy.write_text("[limits]\n" + "".join(lines), encoding="utf-8")
        self.victim = Program(library, program, words, case.limits, policy)
        if self.victim.ready[0] == "unsupported":
            self.victim.end()
            raise Unsupported(f"the library has no transport for {words[-1]}")
        self.endpoint, service = self.victim.ready[1:]
        CORES.place(self.victim.pid, attacked=True)
        if case.answers:
            newcomer = [] if case.newcomer else ["newcomer=no"]
            self.client = Program(library, program, [f"client={service}", f"security={case.security}", *newcomer])
            CORES.place(self.client.pid, attacked=False)

    def attacker(self, case, limited):
        return Attacker(case, self.endpoint, self.listener, limited, self.folder)

    def close(self):
        """Ends the victim and its client, and returns their exit codes."""
        codes = [self.victim.end()]
        if self.client:
            codes.append(self.client.end())
        if self.listener:
            self.listener.close()
        return codes

    def kill(self):
        for program in filter(None, (self.victim, self.client)):
            program.kill()
        if self.listener:
            self.listener.close()
