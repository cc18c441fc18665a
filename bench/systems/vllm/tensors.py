"""Sends tensors from one process to another, as the engine of vLLM sends inputs to its worker, and prints one line of JSON.

    tensors.py WAY SIZE COUNT

WAY is how a tensor of SIZE MiB travels; each of the COUNT tensors is read and summed by the worker before the next one is sent:

    arena    vLLM's MessageQueue with its ShmTensorArena: memory that vLLM manages itself
    queue    vLLM's MessageQueue without it: tensors above 24 MiB go through its XPUB socket
    socket   a PUSH socket of pyzmq, `send(copy=False)`
    loan     a PUSH socket, and each tensor is computed in a loan of tautline_zmq

`arena`, `queue` and `socket` compute each tensor in ordinary memory.
"""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

import numpy
import torch
import zmq
from processes import libraries, processor

WARM_UP = 12
# The sender also computes the sum of each tensor.
CHECKED = 8


class Queue:
    """Both ends of vLLM's queue."""

    def __init__(self, arena):
        from vllm.distributed.device_communicators.shm_broadcast import MessageQueue

        self.queue = MessageQueue(1, 1, enable_shm_tensor_arena=arena)
        self.handle = self.queue.export_handle()

    def __call__(self, values, number):
        self.queue.enqueue(torch.add(values, number))

    def start(self):
        self.queue.wait_until_ready()

    @staticmethod
    def receiver(handle):
        from vllm.distributed.device_communicators.shm_broadcast import MessageQueue

        queue = MessageQueue.create_from_handle(handle, 0)
        queue.wait_until_ready()
        return lambda: queue.dequeue(timeout=60)


class Socket:
    """A PUSH and a PULL socket."""

    def __init__(self, loan):
        self.loan = loan
        self.socket = zmq.Context.instance().socket(zmq.PUSH)
        self.socket.sndhwm = 2
        self.folder = tempfile.TemporaryDirectory()
        self.handle = f"ipc://{self.folder.name}/tensors"
        self.socket.bind(self.handle)
        self.frames = []

    def __call__(self, values, number):
        if not self.loan:
            tensor = torch.add(values, number)
            self.socket.send(tensor.numpy(), copy=False)
            return
        frame = self.writable(values.nbytes)
        torch.add(values, number, out=torch.frombuffer(frame.buffer, dtype=values.dtype))
        self.socket.send(frame, copy=False)

    def writable(self, size):
        """Returns a frame that no receiver uses any longer, or else a new one."""
        from tautline_zmq.backend import loan

        for frame in self.frames:
            if not memoryview(frame).readonly:
                return frame
        self.frames.append(loan(size))
        return self.frames[-1]

    def start(self):
        pass

    @staticmethod
    def receiver(handle):
        socket = zmq.Context.instance().socket(zmq.PULL)
        socket.rcvhwm = 2
        socket.rcvtimeo = 60_000
        socket.connect(handle)
        return lambda: torch.frombuffer(socket.recv(copy=False).buffer, dtype=torch.float32)


WAYS = {"arena": (Queue, True), "queue": (Queue, False), "socket": (Socket, False), "loan": (Socket, True)}


def work(way, handle, count, answers):
    torch.set_num_threads(1)
    receive = WAYS[way][0].receiver(handle)
    began = 0.0
    for number in range(WARM_UP + count):
        if number == WARM_UP:
            began = processor([os.getpid()])
        tensor = receive()
        answers.send(float(tensor.sum()))
        del tensor
    answers.send((processor([os.getpid()]) - began, libraries([os.getpid()])))


def main():
    way, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    kind, argument = WAYS[way]
    sender = kind(argument)
    answers, worker_end = multiprocessing.Pipe(False)
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(way, sender.handle, count, worker_end))
    worker.start()
    worker_end.close()
    sender.start()
    values = torch.from_numpy(numpy.arange((size << 20) // 4, dtype=numpy.float32) % 1000)
    times = []
    began = 0.0
    for number in range(WARM_UP + count):
        if number == WARM_UP:
            began = processor([os.getpid()])
        start = time.perf_counter()
        sender(values, number)
        answer = answers.recv()
        times.append(time.perf_counter() - start)
        if number % CHECKED == 0:
            assert answer == float((values + number).sum()), "the worker has received another tensor"
    used = processor([os.getpid()]) - began
    worker_used, worker_libraries = answers.recv()
    worker.join()
    times = times[WARM_UP:]
    print(json.dumps({
        "way": way,
        "MiB": size,
        "p50 ms": round(statistics.median(times) * 1e3, 3),
        "processor ms": round((used + worker_used) / count * 1e3, 3),
        "libraries": sorted({*libraries([os.getpid()]), *worker_libraries}),
    }), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
