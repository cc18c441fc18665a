"""Arrays of numpy without copies in Python: sent from their memory, and read in the memory of the message.

    python numpy_frames.py [MEGABYTES]

Each message has two parts: a head with the type and the shape, and the numbers.
"""

import json
import sys
import threading
import time

import numpy

from tautline_zmq import PULL, PUSH, Context, Socket


def send_array(socket: Socket, array: "numpy.ndarray") -> None:
    head = json.dumps({"dtype": array.dtype.str, "shape": array.shape}).encode()
    # With copy=False the array must not change until the message has left.
    socket.send_multipart([head, numpy.ascontiguousarray(array).reshape(-1).view("u1").data], copy=False)


def recv_array(socket: Socket) -> "numpy.ndarray":
    head, body = socket.recv_multipart(copy=False)
    form = json.loads(bytes(head))
    # The array refers to the frame, and keeps it alive.
    return numpy.frombuffer(memoryview(body), dtype=form["dtype"]).reshape(form["shape"])


def main(megabytes: int) -> None:
    picture = numpy.random.default_rng(1).random((megabytes, 131_072))
    with Context() as context, context.socket(PULL) as receiver:
        endpoint = receiver.bind("tcp://127.0.0.1:*")

        def send() -> None:
            with context.socket(PUSH) as sender:
                sender.connect(endpoint)
                send_array(sender, picture)

        thread = threading.Thread(target=send)
        started = time.perf_counter()
        thread.start()
        received = recv_array(receiver)
        seconds = time.perf_counter() - started
        thread.join()
        print(f"{received.nbytes >> 20} MiB in {seconds * 1e3:.0f} ms, equal: {bool((received == picture).all())}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
