"""Hands out a hundred pictures a second to its three resizers."""
import time

import zmq

push = zmq.Context.instance().socket(zmq.PUSH)
push.bind("tcp://127.0.0.1:5623")
while True:
    push.send(bytes(1000))
    time.sleep(0.01)
