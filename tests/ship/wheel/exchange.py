"""A typical use of zmq: two sockets over tcp. As a program, it prints the machine, and then twice whether it runs on Tautline, first
from the wheel and then from the called library. tests.py puts the part above the main block into other programs."""

import zmq


def exchange():
    context = zmq.Context()
    first, second = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    second.connect(f"tcp://127.0.0.1:{first.bind_to_random_port('tcp://127.0.0.1')}")
    for size in (0, 1, 255, 256, 100_000):
        first.send(b"x" * size)
        assert second.recv() == b"x" * size
    context.destroy()


if __name__ == "__main__":
    import platform

    import tautline_zmq

    exchange()
    print(platform.machine(), tautline_zmq.active(), zmq.has("tautline"))
