"""Asks for the stock ten times a second: shop.py HOST."""
import sys
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect(f"tcp://{sys.argv[1]}:5643")
answers = 0
while True:
    req.send(b"plums?")
    req.recv()
    answers += 1
    if answers == 10:
        print("working", flush=True)
    time.sleep(0.1)
