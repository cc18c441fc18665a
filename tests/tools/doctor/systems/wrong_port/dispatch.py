"""Hands out a job every 20 ms: dispatch.py PORT."""
import sys
import time

import zmq

push = zmq.Context.instance().socket(zmq.PUSH)
push.bind(f"tcp://127.0.0.1:{sys.argv[1]}")
number = 0
while True:
    push.send_string(f"job {number}")
    number += 1
    time.sleep(0.02)
