"""Two sockets over tcp; prints the machine, and whether they ran on Tautline: by the wheel's word, and by that of the functions called."""

import platform

import tautline_zmq
import zmq

context = zmq.Context()
first, second = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
second.connect(f"tcp://127.0.0.1:{first.bind_to_random_port('tcp://127.0.0.1')}")
for size in (0, 1, 255, 256, 100_000):
    first.send(b"x" * size)
    assert second.recv() == b"x" * size
context.destroy()
print(platform.machine(), tautline_zmq.active(), zmq.has("tautline"))
