"""Asks the ledger: clerk.py PUBLIC-KEY-OF-THE-LEDGER PUBLIC-KEY SECRET-KEY."""
import sys
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.curve_serverkey, req.curve_publickey, req.curve_secretkey = (key.encode() for key in sys.argv[1:])
req.connect("tcp://127.0.0.1:5628")
answers = 0
while True:
    req.send(b"how many?")
    req.recv()
    answers += 1
    if answers == 5:
        print("working", flush=True)
    time.sleep(0.1)
