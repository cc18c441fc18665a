"""What a program does with zmq: two sockets over tcp. Run as one, it prints the machine, and whether it ran on Tautline: by the wheel's
word, and by that of the functions called. tests.py puts what is above that into programs of its own."""

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
