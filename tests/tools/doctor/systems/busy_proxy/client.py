"""Sends requests through the broker as fast as it can."""
import itertools

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect("tcp://127.0.0.1:5650")
for number in itertools.count(1):
    req.send(b"question")
    req.recv()
    if number == 1000:
        print("working", flush=True)
