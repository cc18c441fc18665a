"""Does the jobs of dispatch.py: work.py PORT."""
import sys

import zmq

pull = zmq.Context.instance().socket(zmq.PULL)
pull.connect(f"tcp://127.0.0.1:{sys.argv[1]}")
done = 0
while True:
    pull.recv_string()
    done += 1
    if done == 20:
        print("working", flush=True)
