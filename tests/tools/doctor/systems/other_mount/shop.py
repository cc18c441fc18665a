"""Sends ten orders a second to a path: shop.py PATH."""
import sys
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect(f"ipc://{sys.argv[1]}")
accepted = 0
while True:
    req.send(b"two apples")
    req.recv()
    accepted += 1
    if accepted == 10:
        print("working", flush=True)
    time.sleep(0.1)
