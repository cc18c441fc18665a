"""The benchmark's program in Python, on an unmodified pyzmq. bench/README.md has the contract of arguments and output.

Both ends are separate processes. The near end is this process. It forks the far end before it imports zmq, and prints the result.
"""

import argparse
import asyncio
import ctypes
import itertools
import json
import os
import platform
import shutil
import signal
import socket as system
import sys
import tempfile
import traceback
from time import perf_counter_ns, process_time

# The near end and the far end of each pattern, by module and function.
PATTERNS = {
    "req_rep": ("exchange", "request", "reply"),
    "push_pull": ("exchange", "pull", "push"),
    "engine_trip": ("engine", "ask", "answer_each"),
    "engine_answers": ("engine", "listen", "stream"),
}
PR_SET_PDEATHSIG = 1


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--on", choices=("libzmq", "preload", "backend"), required=True, help="what pyzmq must run on")
    parser.add_argument("--pattern", required=True)
    parser.add_argument("--transport", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--timeout", type=int, required=True)
    parser.add_argument("--two-processes", action="store_true")
    return parser.parse_args()


class Run:
    """One end's view of the run: its size, and a line to the other end beside the measured sockets."""

    def __init__(self, options, folder, line):
        self.size, self.count = options.size, options.count
        # Unmeasured messages before the measured ones.
        self.warm_up = max(options.count // 10, 1)
        self.transport, self.folder = options.transport, folder
        self.line = line.makefile("rw")
        self.bound = 0

    def numbers(self):
        """Returns the numbers of all messages: those of the warm-up, then those that are measured, which begin with 0 again."""
        return itertools.chain(range(self.warm_up), range(self.count))

    def tell(self, what):
        self.line.write(json.dumps(what) + "\n")
        self.line.flush()

    async def hear(self):
        """Waits for the other end, while the event loop serves the sockets."""
        text = await asyncio.get_running_loop().run_in_executor(None, self.line.readline)
        if not text:
            raise RuntimeError("the other end has ended")
        return json.loads(text)

    def bind(self, socket):
        """Binds a socket, and returns its endpoint."""
        self.bound += 1
        socket.bind("tcp://127.0.0.1:*" if self.transport == "tcp" else f"ipc://{self.folder}/{self.bound}")
        return socket.last_endpoint.decode()

    async def round_trips(self, exchange, tally):
        """Measures round trips, after some without measurement. `exchange` makes the one of a number."""
        for number in range(self.warm_up):
            await exchange(number)
        times = [0] * self.count
        used = process_time()
        begin = last = perf_counter_ns()
        for number in range(self.count):
            await exchange(number)
            now = perf_counter_ns()
            times[number] = now - last
            last = now
        used = process_time() - used
        self.tell("finished")
        times.sort()
        seconds = (last - begin) / 1e9
        metrics = {"messages_per_second": self.count / seconds}
        metrics |= {f"p{part}_us": times[round((self.count - 1) * part / 100)] / 1e3 for part in (50, 99)}
        return tally.report() | {"cpu_seconds": used, "messages": self.count, "seconds": seconds, "metrics": metrics}


async def end(run, module, function, on):
    """Runs one end. Its figures also have the library that it ran on."""
    import zmq

    path = library_in_use(zmq)
    figures = await getattr(__import__(module), function)(run)
    version = f"{zmq.zmq_version()}, pyzmq {zmq.__version__}, Python {platform.python_version()}"
    return figures | {"on": on_of(zmq), "library": path, "version": version}


def on_of(zmq):
    """Returns what pyzmq runs on, in the words of --on."""
    if zmq.backend.Socket.__module__.startswith("tautline_zmq"):
        return "backend"
    return "preload" if zmq.has("tautline") else "libzmq"


def library_in_use(zmq):
    """Returns the path of the library that pyzmq calls."""
    if on_of(zmq) == "backend":
        return sys.modules["tautline_zmq._native"].__file__
    with open("/proc/self/maps") as lines:
        # A path may contain spaces.
        mappings = [line.rstrip("\n").split(None, 5) for line in lines]
    mappings = [(fields[0].split("-"), fields[-1]) for fields in mappings if "libzmq" in os.path.basename(fields[-1])]
    try:
        # A preloaded library comes first. pyzmq's own is visible only to pyzmq.
        address = ctypes.cast(ctypes.CDLL(None).zmq_ctx_new, ctypes.c_void_p).value
        mappings = [(place, path) for place, path in mappings if int(place[0], 16) <= address < int(place[1], 16)]
    except AttributeError:
        pass
    return mappings[0][1]


def far_end(options, folder, line, parent):
    """Runs the far end in a forked process, which ends with its parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.alarm(options.timeout + 5)
    module, _, function = PATTERNS[options.pattern]
    run = Run(options, folder, line)
    try:
        run.tell(asyncio.run(end(run, module, function, options.on)))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


async def near_end(options, run):
    module, function, _ = PATTERNS[options.pattern]
    async with asyncio.timeout(options.timeout):
        return await end(run, module, function, options.on), await run.hear()


def measure(options):
    if options.pattern not in PATTERNS or options.api != "asyncio" or options.transport not in ("tcp", "ipc") or not options.two_processes:
        return {"ok": False, "unsupported": True, "error": "this program has other patterns: bench/patterns.md"}
    folder = tempfile.mkdtemp()
    here, there = system.socketpair()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        here.close()
        far_end(options, folder, there, parent)
    there.close()
    try:
        near, far = asyncio.run(near_end(options, Run(options, folder, here)))
    except TimeoutError:
        ended = os.waitpid(child, os.WNOHANG)[0] != 0
        error = "the far end failed" if ended else f"hung: no result after {options.timeout} s"
        return {"ok": False, "error": error}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if (near["on"], far["on"]) != (options.on, options.on):
        return {"ok": False, "error": f"pyzmq ran on {near['on']} and {far['on']} instead of {options.on}"}
    for figure in ("cpu_seconds", "lost", "reordered", "corrupted"):
        near[figure] += far.get(figure, 0)
    return {"ok": True, "count": options.count} | near


if __name__ == "__main__":
    try:
        result = measure(arguments())
    except Exception as failure:
        traceback.print_exc()
        result = {"ok": False, "error": f"{type(failure).__name__}: {failure}"}
    print(json.dumps(result), flush=True)
    # A thread may still wait for the other end.
    os._exit(0 if result["ok"] else 1)
