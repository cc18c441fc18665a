"""Stores the measurements of sensor.c."""
import zmq

pull = zmq.Context.instance().socket(zmq.PULL)
pull.bind("tcp://127.0.0.1:5627")
stored = 0
while True:
    pull.recv()
    stored += 1
    if stored == 20:
        print("working", flush=True)
