"""Asks for one item repeatedly: shop.py ITEM."""
import logging
import sys
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.rcvtimeo = 500
req.connect("tcp://127.0.0.1:5605")
answers = 0
while True:
    try:
        req.send_string(sys.argv[1])
        req.recv_string()
        answers += 1
        if answers == 10:
            print("working", flush=True)
    except zmq.ZMQError:
        logging.exception("no answer")
    time.sleep(0.1)
