"""Does the work of source.py. A piece takes ten milliseconds."""
import itertools
import time

import zmq

pull = zmq.Context.instance().socket(zmq.PULL)
pull.rcvhwm = 50
pull.connect("tcp://127.0.0.1:5652")
for number in itertools.count(1):
    pull.recv()
    time.sleep(0.01)
    if number == 100:
        print("working", flush=True)
