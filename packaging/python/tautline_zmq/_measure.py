"""Roles of `bench`. Each role runs in its own process: `python -m tautline_zmq._measure ROLE ...`.

A role that binds prints its endpoint in a line. The role that measures prints its result as JSON. TAUTLINE_PYZMQ decides
whether the process runs on Tautline.
"""

import asyncio
import json
import sys
import time

import tautline_zmq

tautline_zmq.install()

import zmq  # noqa: E402
import zmq.asyncio  # noqa: E402

WARM_UP = 0.2  # seconds


def collect(size, seconds):
    """Receives messages, and prints their number per second."""
    socket = bound(zmq.PULL)
    window = Window(seconds)
    count = 0
    while window.open():
        # Read the clock only once per 100 messages, because a reading takes time.
        for _ in range(100):
            message = socket.recv()
        if len(message) != size:
            sys.exit(f"a message has {len(message)} bytes")
        count = count + 100 if window.counts else 0
    tell(count / window.length)


def supply(endpoint, size, seconds):
    """Sends until the parent kills the process."""
    socket = connected(zmq.PUSH, endpoint)
    message = bytes(size)
    while True:
        socket.send(message)


def answer(size, seconds):
    socket = bound(zmq.REP)
    while True:
        socket.send(socket.recv())


def ask(endpoint, size, seconds):
    """Sends requests and waits for each reply. Prints the number of round trips per second."""
    socket = connected(zmq.REQ, endpoint)
    message = bytes(size)
    window = Window(seconds)
    count = 0
    while window.open():
        socket.send(message)
        socket.recv()
        count = count + 1 if window.counts else 0
    tell(count / window.length)


def answer_async(size, seconds):
    async def serve():
        socket = bound(zmq.REP, zmq.asyncio.Context())
        while True:
            await socket.send(await socket.recv())

    asyncio.run(serve())


def ask_async(endpoint, size, seconds):
    async def measure():
        socket = connected(zmq.REQ, endpoint, zmq.asyncio.Context())
        message = bytes(size)
        window = Window(seconds)
        count = 0
        while window.open():
            await socket.send(message)
            await socket.recv()
            count = count + 1 if window.counts else 0
        tell(count / window.length)

    asyncio.run(measure())


class Window:
    """Time window of a measurement: `seconds`, after a warm-up."""

    def __init__(self, seconds):
        self.counts = False
        self.length = seconds
        self._begin = time.perf_counter()
        self._until = self._begin + WARM_UP

    def open(self):
        now = time.perf_counter()
        if now < self._until:
            return True
        if self.counts:
            self.length = now - self._begin
            return False
        self.counts = True
        self._begin = now
        self._until = now + self.length
        return True


def bound(kind, context=None):
    socket = (context or zmq.Context.instance()).socket(kind)
    socket.bind("tcp://127.0.0.1:*")
    print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    return socket


def connected(kind, endpoint, context=None):
    socket = (context or zmq.Context.instance()).socket(kind)
    socket.connect(endpoint)
    return socket


def tell(per_second):
    print(json.dumps({"per_second": per_second, "tautline": tautline_zmq.active()}), flush=True)


if __name__ == "__main__":
    role, *endpoint, size, seconds = sys.argv[1:]
    globals()[role](*endpoint, int(size), float(seconds))
    # The parent kills the other process, so queued messages need no delivery.
    zmq.Context.instance().destroy(linger=0)
