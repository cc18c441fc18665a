"""A pipeline: a source hands out numbers, workers square them, and a sink adds the squares up.

    python pipeline.py [NUMBERS [WORKERS]]

Each stage is a process here. They could be on different machines: the sockets find each other by their endpoints, and a
worker that starts later simply gets its share of the rest.
"""

import multiprocessing
import sys

from tautline_zmq import PULL, PUSH, Context


def work(tasks: str, results: str) -> None:
    with Context() as context, context.socket(PULL) as source, context.socket(PUSH) as sink:
        source.connect(tasks)
        sink.connect(results)
        while True:
            # Takes whatever has arrived: one call for many messages.
            numbers = [int(message) for message in source.recv_many()]
            sink.send_many([b"%d" % (number * number) for number in numbers if number >= 0])
            if -1 in numbers:
                return


def main(count: int, workers: int) -> int:
    with Context() as context, context.socket(PUSH) as source, context.socket(PULL) as sink:
        tasks = source.bind("tcp://127.0.0.1:*")
        results = sink.bind("tcp://127.0.0.1:*")
        processes = [multiprocessing.Process(target=work, args=(tasks, results)) for _ in range(workers)]
        for process in processes:
            process.start()
        # PUSH deals out messages evenly, so every worker has to be there before the first one.
        source.wait_for_peers(workers)
        source.send_many(b"%d" % number for number in range(count))
        source.send_many([b"-1"] * workers)
        total = sum(int(sink.recv()) for _ in range(count))
        for process in processes:
            process.join()
        return total


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]] or [1000]
    # Sockets do not survive a fork, so the workers start as new interpreters.
    multiprocessing.set_start_method("spawn")
    print("sum of squares:", main(arguments[0], arguments[1] if len(arguments) > 1 else 2))
