"""Stores measurements: disk.py MILLISECONDS-OF-A-WRITE."""
import sys
import time

import zmq

write = int(sys.argv[1]) / 1000
pull = zmq.Context.instance().socket(zmq.PULL)
pull.bind("tcp://127.0.0.1:5641")
stored = 0
while True:
    pull.recv()
    stored += 1
    if stored == 1000:
        print("working", flush=True)
    if write:
        time.sleep(write)
