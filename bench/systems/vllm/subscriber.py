"""Subscribes to the events of a KV cache of vLLM, and writes the number of each batch to a file.

    subscriber.py EVENTS REPLAY FILE

It first asks the replay for all batches that are not in FILE, which a killed predecessor has written, and then receives live ones. A replay that
lacks batches is asked for again. After a line on standard input it asks once more, for batches that it missed live, and prints one line of JSON.
"""

import json
import os
import pathlib
import sys
import time

import zmq
from processes import libraries

END = (-1).to_bytes(8, "big", signed=True)
SILENCE_MS = 1000
ATTEMPTS = 50


class Batches:
    """The numbers of the batches that exist in the file."""

    def __init__(self, name):
        known = pathlib.Path(name).read_bytes() if os.path.exists(name) else b""
        self.numbers = {int.from_bytes(known[at : at + 8], "big") for at in range(0, len(known) - 7, 8)}
        self.file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, number):
        """Returns 1 if the number is new, or 0."""
        if number in self.numbers:
            return 0
        os.write(self.file, number.to_bytes(8, "big"))
        self.numbers.add(number)
        return 1

    def first_missing(self):
        return next(number for number in range(len(self.numbers) + 1) if number not in self.numbers)

    def missing(self):
        return max(self.numbers, default=-1) + 1 - len(self.numbers)


def ask(context, address, batches):
    """Asks for all batches from the first missing one on. Returns the number of new ones, and if the replay has come to its end."""
    new = 0
    # A new socket, so that no batches of an earlier replay are in its queue.
    with context.socket(zmq.DEALER) as replay:
        replay.linger = 0
        replay.connect(address)
        replay.send_multipart([b"", batches.first_missing().to_bytes(8, "big")])
        while replay.poll(SILENCE_MS):
            _, _, sequence, _ = replay.recv_multipart()
            if sequence == END:
                return new, True
            new += batches.add(int.from_bytes(sequence, "big"))
    return new, False


def catch_up(context, address, batches):
    """Returns the number of new batches of each replay."""
    counts = []
    for _ in range(ATTEMPTS):
        new, ended = ask(context, address, batches)
        counts.append(new)
        if ended and not batches.missing():
            break
    return counts


def main():
    events, address, name = sys.argv[1:]
    batches = Batches(name)
    context = zmq.Context()
    live = context.socket(zmq.SUB)
    live.rcvhwm = 0
    live.subscribe("")
    live.connect(events)
    start = time.perf_counter()
    replays = catch_up(context, address, batches)
    seconds = time.perf_counter() - start
    print("subscribed", flush=True)
    poller = zmq.Poller()
    poller.register(live, zmq.POLLIN)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    received = 0
    while live in dict(poller.poll()):
        new = batches.add(int.from_bytes(live.recv_multipart()[1], "big"))
        if new and not received:
            print("received", flush=True)
        received += new
    while live.poll(SILENCE_MS):
        received += batches.add(int.from_bytes(live.recv_multipart()[1], "big"))
    missed_live = sum(catch_up(context, address, batches))
    print(
        json.dumps(
            {
                "replayed": sum(replays),
                "replays": len(replays),
                "lost by the first replay": sum(replays[1:]),
                "catch-up ms": round(seconds * 1e3),
                "live": received,
                "lost live": missed_live,
                "missing": batches.missing(),
                "libraries": libraries([os.getpid()]),
            }
        ),
        flush=True,
    )
    sys.stdin.read()


if __name__ == "__main__":
    main()
