"""Sends ten requests a second through the broker."""
import itertools
import time

import zmq

req = zmq.Context.instance().socket(zmq.REQ)
req.connect("tcp://127.0.0.1:5607")
for number in itertools.count():
    req.send_string(str(number))
    req.recv_string()
    if number == 10:
        print("working", flush=True)
    time.sleep(0.1)
