"""Sends four thousand measurements a second, and never waits."""
import time

import zmq

push = zmq.Context.instance().socket(zmq.PUSH)
push.sndhwm = 0
push.connect("tcp://127.0.0.1:5641")
while True:
    for _ in range(80):
        push.send(bytes(500))
    time.sleep(0.02)
