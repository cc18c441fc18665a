"""receive.py N: prints the port of a PULL socket, then N messages, one per line."""

import sys

import zmq

context = zmq.Context()
socket = context.socket(zmq.PULL)
print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
for _ in range(int(sys.argv[1])):
    print(socket.recv().decode())
context.destroy()
