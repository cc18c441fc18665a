"""Sends ten orders a second: trader.py PORT."""
import sys
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect(f"tcp://127.0.0.1:{sys.argv[1]}")
while True:
    req.send(b"buy 10")
    req.recv()
    time.sleep(0.1)
