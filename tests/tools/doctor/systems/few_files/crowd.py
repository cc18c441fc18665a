"""Forty visitors. Each one sends a greeting once a second."""
import time

import zmq

context = zmq.Context.instance()
visitors = []
for _ in range(40):
    visitor = context.socket(zmq.DEALER)
    visitor.connect("tcp://127.0.0.1:5610")
    visitors.append(visitor)
rounds = 0
while True:
    for visitor in visitors:
        visitor.send(b"good morning")
    for visitor in visitors:
        visitor.recv()
    rounds += 1
    if rounds == 3:
        print("working", flush=True)
    time.sleep(1)
