"""Measures the native API of Python beside pyzmq, in interleaved rounds.

    PYTHONPATH=packaging/python python bindings/python/bench/native.py [--rounds 5] [--loop uvloop] [CASE...]

Cases:

    push    asyncio, PUSH to PULL over tcp, 64 bytes, two processes: thousands of messages per second
    req     asyncio, REQ and REP over tcp, 64 bytes, two processes: microseconds and processor time of both ends per round trip.
            `floor` is the same exchange over a socketpair with loop.add_reader: the least that the event loop costs.
            `floor tcp` uses a TCP connection instead.
    sync    send and receive over inproc, 64 bytes: nanoseconds per call

pyzmq runs on its own libzmq. Shows the best and the median of the rounds.
"""

import argparse
import asyncio
import os
import socket as system
import statistics
import subprocess
import sys
import time

KINDS = {"PUSH": 8, "PULL": 7, "REQ": 3, "REP": 4}
MESSAGE = b"x" * 64
FLAVOURS = {"push": ("pyzmq", "native", "native recv_many"), "req": ("pyzmq", "native", "floor", "floor tcp"), "sync": ("pyzmq", "native")}


def open_socket(flavour, kind):
    if flavour == "pyzmq":
        import zmq.asyncio

        return zmq.asyncio.Context.instance().socket(KINDS[kind])
    from tautline_zmq import aio

    return aio.Context.instance().socket(KINDS[kind])


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


def sync(flavour):
    """Prints the least nanoseconds of a send and of a receive, in 150 loops of 2000."""
    if flavour == "pyzmq":
        import zmq

        context = zmq.Context()
    else:
        from tautline_zmq import Context

        context = Context()
    sender, receiver = context.socket(KINDS["PUSH"]), context.socket(KINDS["PULL"])
    sender.hwm = receiver.hwm = 0
    sender.bind("inproc://x")
    receiver.connect("inproc://x")
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
    print(best[0] / 2000 * 1e9, best[1] / 2000 * 1e9)


def child(case, flavour, *arguments, stdin=subprocess.PIPE):
    environment = {**os.environ, "TAUTLINE_PYZMQ": "0"}
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


def measure(case, flavour, loop):
    """Returns the figures of one measurement."""
    if case == "sync":
        return [float(word) for word in child(case, flavour).communicate(timeout=60)[0].split()]
    count = {"push": 50_000 if flavour == "pyzmq" else 1_000_000, "req": 5000}[case]
    free = system.create_server(("127.0.0.1", 0))
    endpoint = "tcp://127.0.0.1:%d" % free.getsockname()[1]
    free.close()
    ends = {"floor": system.socketpair, "floor tcp": tcp_pair}.get(flavour, lambda: (subprocess.PIPE, subprocess.PIPE))()
    first = child(case, flavour, loop, "a", endpoint, count, stdin=ends[0])
    second = None
    try:
        assert first.stdout.readline() == "ready\n"
        second = child(case, flavour, loop, "b", endpoint, count, stdin=ends[1])
        if case == "push":
            figures = [float(word) for word in first.communicate(timeout=60)[0].split()]
            second.communicate("\n", timeout=60)
            return figures
        wall, used = map(float, second.communicate(timeout=60)[0].split())
        return [wall, used + float(first.communicate(timeout=60)[0])]
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
}


def main():
    if sys.argv[1:2] == ["--child"]:
        case, flavour, *arguments = sys.argv[2:]
        if case == "sync":
            return sync(flavour)
        loop, side, endpoint, count = arguments
        coroutine = {"push": push, "req": req}[case](flavour, side, endpoint, int(count))
        if loop == "uvloop":
            import uvloop

            uvloop.run(coroutine)
        else:
            asyncio.run(coroutine)
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
            best = (max, min) if case == "push" else (min, min)
            shown = "   ".join(
                f"{name}: best {pick(column):.1f}, median {statistics.median(column):.1f}"
                for name, pick, column in zip(COLUMNS[case], best, zip(*figures))
            )
            print(f"{case:5} {flavour:17} {shown}", flush=True)


if __name__ == "__main__":
    main()
