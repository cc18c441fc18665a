"""Asks for a price ten times a second."""
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.rcvtimeo = 1000
req.connect("tcp://127.0.0.1:5640")
prices = 0
while True:
    try:
        req.send(b"apples?")
        req.recv()
        prices += 1
        if prices == 20:
            print("working", flush=True)
    except zmq.ZMQError:
        # The next question may have better luck.
        pass
    time.sleep(0.1)
