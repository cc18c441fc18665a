"""Sends twenty requests a second through the broker."""
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect("tcp://127.0.0.1:5620")
replies = 0
while True:
    req.send(b"invoice")
    req.recv()
    replies += 1
    if replies == 10:
        print("working", flush=True)
    time.sleep(0.05)
