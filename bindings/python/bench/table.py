"""Measures Tautline's Python package beside pyzmq, in interleaved rounds.

    PYTHONPATH=packaging/python python bindings/python/bench/table.py [--rounds 5] [--loop uvloop] [CASE...]

Flavours of a program:

    pyzmq    pyzmq on its own libzmq
    patch    the same, with the faster zmq.asyncio
    backend  the same program, unmodified, on Tautline's sockets
    native   the API of tautline_zmq

Cases, with messages of 64 bytes unless said otherwise:

    push     asyncio, PUSH to PULL over tcp, two processes: thousands of messages per second
    req      asyncio, REQ and REP over tcp, two processes: microseconds and processor time of both ends per round trip.
             `floor` is the same exchange over a socketpair with loop.add_reader: the least that the event loop costs.
             `floor tcp` uses a TCP connection instead.
    sync     send and receive over inproc: nanoseconds per call
    many     send_many and recv_many over inproc, with messages that have arrived before: nanoseconds per message
    stream   send_many and recv_many over tcp, two processes: thousands of messages per second
    array    64 MiB over ipc, two processes, from the send until the answer of the receiver: milliseconds
             with copy=True and with copy=False. A numpy array if numpy is there, else a bytearray.
    flood    asyncio, heartbeats each 10 ms in 1.5 s, while a task receives all that another process sends: the number of
             heartbeats, and the longest delay of one in milliseconds

Shows the best and the median of the rounds.
"""

import argparse
import asyncio
import os
import socket as system
import statistics
import subprocess
import sys
import tempfile
import time

KINDS = {"PUSH": 8, "PULL": 7, "REQ": 3, "REP": 4}
MESSAGE = b"x" * 64
BATCH = [MESSAGE] * 1000
ARRAY = 64 << 20
FLAVOURS = {
    "push": ("pyzmq", "patch", "backend", "native", "native recv_many"),
    "req": ("pyzmq", "patch", "backend", "native", "floor", "floor tcp"),
    "sync": ("pyzmq", "backend", "native"),
    "many": ("backend", "native"),
    "stream": ("backend", "native"),
    "array": ("pyzmq", "backend", "native"),
    "flood": ("pyzmq", "patch", "backend", "native"),
}
# The value of TAUTLINE_PYZMQ for each flavour.
MODES = {"patch": "asyncio", "backend": "native"}


def open_context(flavour, of_asyncio=False):
    if flavour.startswith("native"):
        import tautline_zmq
        from tautline_zmq import aio

        return aio.Context() if of_asyncio else tautline_zmq.Context()
    if flavour in MODES:
        import tautline_zmq

        tautline_zmq.install()
    import zmq
    import zmq.asyncio

    return zmq.asyncio.Context() if of_asyncio else zmq.Context()


def open_socket(flavour, kind):
    return open_context(flavour, of_asyncio=True).socket(KINDS[kind])


async def push(flavour, side, endpoint, count):
    if side == "b":
        sender = open_socket(flavour, "PUSH")
        sender.connect(endpoint)
        for _ in range(count):
            await sender.send(MESSAGE)
        sys.stdin.readline()
        return
    receiver = open_socket(flavour, "PULL")
    receiver.bind(endpoint)
    print("ready", flush=True)
    await receiver.recv()
    started, used = time.perf_counter(), time.process_time()
    left = count - 1
    if flavour == "native recv_many":
        while left > 0:
            left -= len(await receiver.recv_many())
    else:
        for _ in range(left):
            await receiver.recv()
    seconds, used = time.perf_counter() - started, time.process_time() - used
    print((count - 1) / seconds / 1e3, used / (count - 1) * 1e6, flush=True)


async def req(flavour, side, endpoint, count):
    if flavour.startswith("floor"):
        return await floor(side, count)
    if side == "a":
        reply = open_socket(flavour, "REP")
        reply.bind(endpoint)
        print("ready", flush=True)
        for index in range(count + 100):
            if index == 100:
                used = time.process_time()
            await reply.send(await reply.recv())
        print((time.process_time() - used) / count * 1e6, flush=True)
        await asyncio.sleep(0.05)
        return
    request = open_socket(flavour, "REQ")
    request.connect(endpoint)
    for index in range(count + 100):
        if index == 100:
            started, used = time.perf_counter(), time.process_time()
        await request.send(MESSAGE)
        await request.recv()
    print((time.perf_counter() - started) / count * 1e6, (time.process_time() - used) / count * 1e6, flush=True)


async def floor(side, count):
    """One end of a connection, which the parent has opened as standard input of this process."""
    end = system.socket(fileno=0)
    end.setblocking(False)
    loop = asyncio.get_running_loop()
    waiting = None

    def ready():
        nonlocal waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
            waiting = None

    loop.add_reader(end, ready)

    async def recv():
        nonlocal waiting
        while True:
            try:
                return end.recv(64)
            except BlockingIOError:
                pass
            waiting = loop.create_future()
            await waiting

    if side == "a":
        print("ready", flush=True)
        used = time.process_time()
        for _ in range(count):
            end.send(await recv())
        print((time.process_time() - used) / count * 1e6, flush=True)
        return
    started, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        end.send(MESSAGE)
        await recv()
    print((time.perf_counter() - started) / count * 1e6, (time.process_time() - used) / count * 1e6, flush=True)


def pair(flavour):
    """Returns a PUSH and a PULL socket that are connected over inproc, without limits of their queues."""
    context = open_context(flavour)
    sender, receiver = context.socket(KINDS["PUSH"]), context.socket(KINDS["PULL"])
    sender.hwm = receiver.hwm = 0
    sender.bind("inproc://x")
    receiver.connect("inproc://x")
    return sender, receiver


def sync(flavour):
    """Returns the least nanoseconds of a send and of a receive, in 150 loops of 2000."""
    sender, receiver = pair(flavour)
    send, recv = sender.send, receiver.recv
    best = [1e9, 1e9]
    for _ in range(150):
        started = time.perf_counter()
        for _ in range(2000):
            send(MESSAGE)
        between = time.perf_counter()
        for _ in range(2000):
            recv()
        best = [min(best[0], between - started), min(best[1], time.perf_counter() - between)]
    return best[0] / 2000 * 1e9, best[1] / 2000 * 1e9


def many(flavour):
    """Returns the least nanoseconds per message of a batch that is sent and received, in 150 loops of 2000."""
    sender, receiver = pair(flavour)
    best = [1e9, 1e9]
    for _ in range(150):
        started = time.perf_counter()
        for _ in range(2):
            sender.send_many(BATCH)
        between = time.perf_counter()
        left = 2000
        while left:
            left -= len(receiver.recv_many(1000))
        best = [min(best[0], between - started), min(best[1], time.perf_counter() - between)]
    return best[0] / 2000 * 1e9, best[1] / 2000 * 1e9


def stream(flavour, side, endpoint, count):
    """Returns the thousands of messages per second, and the processor time of the receiver in microseconds each."""
    context = open_context(flavour)
    if side == "b":
        sender = context.socket(KINDS["PUSH"])
        sender.connect(endpoint)
        for _ in range(count // 1000):
            sender.send_many(BATCH)
        sys.stdin.readline()
        return None
    receiver = context.socket(KINDS["PULL"])
    receiver.bind(endpoint)
    print("ready", flush=True)
    left = count - len(receiver.recv_many())
    received = left
    started, used = time.perf_counter(), time.process_time()
    while left > 0:
        left -= len(receiver.recv_many())
    seconds, used = time.perf_counter() - started, time.process_time() - used
    return received / seconds / 1e3, used / received * 1e6


def array(flavour, side, endpoint, count):
    """Returns the least milliseconds from a send until the answer, with and without copies."""
    context = open_context(flavour)
    if side == "a":
        receiver, answers = context.socket(KINDS["PULL"]), context.socket(KINDS["PUSH"])
        receiver.bind(endpoint)
        answers.bind(endpoint + "-answers")
        print("ready", flush=True)
        for index in range(2 * count):
            message = receiver.recv(copy=index < count)
            assert len(message) == ARRAY
            answers.send(b"")
        sys.stdin.readline()
        return None
    try:
        import numpy

        body = numpy.ones(ARRAY, numpy.uint8)
    except ImportError:
        body = bytearray(b"1") * ARRAY
    sender, answers = context.socket(KINDS["PUSH"]), context.socket(KINDS["PULL"])
    sender.connect(endpoint)
    answers.connect(endpoint + "-answers")
    best = [1e9, 1e9]
    for index in range(2 * count):
        started = time.perf_counter()
        sender.send(body, copy=index < count)
        answers.recv()
        best[index >= count] = min(best[index >= count], time.perf_counter() - started)
    return best[0] * 1e3, best[1] * 1e3


async def flood(flavour, side, endpoint, count):
    if side == "b":
        # The native API sends fastest.
        sender = open_context("native").socket(KINDS["PUSH"])
        sender.connect(endpoint)
        while True:
            # Until the parent ends this process.
            sender.send_many(BATCH)
    receiver = open_socket(flavour, "PULL")
    receiver.bind(endpoint)
    print("ready", flush=True)
    delays = []

    async def beat():
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.01)
            now = time.perf_counter()
            delays.append(now - last - 0.01)
            last = now

    await receiver.recv()
    task = asyncio.ensure_future(beat())
    until = time.perf_counter() + 1.5
    while time.perf_counter() < until:
        await receiver.recv()
    task.cancel()
    print(len(delays), max(delays, default=1.5) * 1e3, flush=True)


def child(case, flavour, *arguments, stdin=subprocess.PIPE):
    environment = {**os.environ, "TAUTLINE_PYZMQ": MODES.get(flavour, "0")}
    environment.pop("PYZMQ_BACKEND", None)
    command = [sys.executable, os.path.abspath(__file__), "--child", case, flavour, *map(str, arguments)]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True, env=environment)


def tcp_pair():
    """Returns both ends of a TCP connection."""
    with system.create_server(("127.0.0.1", 0)) as server:
        ends = (system.create_connection(server.getsockname()), server.accept()[0])
    for end in ends:
        end.setsockopt(system.IPPROTO_TCP, system.TCP_NODELAY, 1)
    return ends


COUNTS = {"push": 1_000_000, "req": 5000, "stream": 3_000_000, "array": 8, "flood": 0}
# pyzmq's own zmq.asyncio is slower.
SLOW_COUNTS = {"pyzmq": 50_000, "patch": 200_000, "backend": 500_000}


def measure(case, flavour, loop):
    """Returns the two figures of one measurement."""
    if case in ("sync", "many"):
        return [float(word) for word in child(case, flavour).communicate(timeout=60)[0].split()]
    count = SLOW_COUNTS.get(flavour, COUNTS[case]) if case == "push" else COUNTS[case]
    with tempfile.TemporaryDirectory() as folder:
        endpoint = f"ipc://{folder}/x"
        if case != "array":
            with system.create_server(("127.0.0.1", 0)) as free:
                endpoint = "tcp://127.0.0.1:%d" % free.getsockname()[1]
        return measure_two(case, flavour, loop, endpoint, count)


def measure_two(case, flavour, loop, endpoint, count):
    """Runs two processes, of which the first one binds the endpoint."""
    ends = {"floor": system.socketpair, "floor tcp": tcp_pair}.get(flavour, lambda: (subprocess.PIPE, subprocess.PIPE))()
    first = child(case, flavour, loop, "a", endpoint, count, stdin=ends[0])
    second = None
    try:
        assert first.stdout.readline() == "ready\n"
        second = child(case, flavour, loop, "b", endpoint, count, stdin=ends[1])
        if case in ("req", "array"):
            figures = [float(word) for word in second.communicate(timeout=60)[0].split()]
            other = first.communicate(None if flavour.startswith("floor") else "\n", timeout=60)[0]
            if case == "req":
                figures[1] += float(other)
            return figures
        figures = [float(word) for word in first.communicate(timeout=60)[0].split()]
        if case != "flood":
            second.communicate("\n", timeout=60)
        return figures
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.wait()
        if flavour.startswith("floor"):
            for end in ends:
                end.close()


COLUMNS = {
    "push": ("K messages/s", "receiver us each"),
    "req": ("us wall", "us processor, both ends"),
    "sync": ("ns send", "ns receive"),
    "many": ("ns send_many", "ns recv_many"),
    "stream": ("K messages/s", "receiver us each"),
    "array": ("ms copy", "ms no copy"),
    "flood": ("heartbeats of 150", "ms latest"),
}
# The cases whose first figure is better if it is larger.
LARGER = ("push", "stream", "flood")


def run_child(case, flavour, arguments):
    if case in ("sync", "many"):
        return {"sync": sync, "many": many}[case](flavour)
    loop, side, endpoint, count = arguments
    if case in ("stream", "array"):
        return {"stream": stream, "array": array}[case](flavour, side, endpoint, int(count))
    coroutine = {"push": push, "req": req, "flood": flood}[case](flavour, side, endpoint, int(count))
    if loop == "uvloop":
        import uvloop

        return uvloop.run(coroutine)
    return asyncio.run(coroutine)


def main():
    if sys.argv[1:2] == ["--child"]:
        figures = run_child(sys.argv[2], sys.argv[3], sys.argv[4:])
        if figures:
            print(*figures)
        # Contexts and sockets end with the process.
        sys.stdout.flush()
        os._exit(0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=list(FLAVOURS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    arguments = parser.parse_args()
    for case in arguments.cases:
        results = {flavour: [] for flavour in FLAVOURS[case]}
        for _ in range(arguments.rounds):
            for flavour, figures in results.items():
                figures.append(measure(case, flavour, arguments.loop))
        for flavour, figures in results.items():
            best = (max if case in LARGER else min, min)
            shown = "   ".join(
                f"{name}: best {pick(column):.1f}, median {statistics.median(column):.1f}"
                for name, pick, column in zip(COLUMNS[case], best, zip(*figures))
            )
            print(f"{case:6} {flavour:16} {shown}", flush=True)


if __name__ == "__main__":
    main()
