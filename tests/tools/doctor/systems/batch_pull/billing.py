"""Takes all readings that have arrived, once every ten seconds."""
import time

import zmq

pull = zmq.Context.instance().socket(zmq.PULL)
pull.bind("tcp://127.0.0.1:5658")
while True:
    pull.recv()
    while pull.poll(0):
        pull.recv()
    print("working", flush=True)
    time.sleep(10)
