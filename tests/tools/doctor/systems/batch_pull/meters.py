"""Sends forty readings a second."""
import time

import zmq

push = zmq.Context.instance().socket(zmq.PUSH)
push.connect("tcp://127.0.0.1:5658")
while True:
    push.send(b"230 V")
    time.sleep(0.025)
