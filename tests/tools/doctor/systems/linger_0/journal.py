"""Writes down the events."""
import zmq

pull = zmq.Context.instance().socket(zmq.PULL)
pull.bind("tcp://127.0.0.1:5638")
events = 0
while True:
    pull.recv()
    events += 1
    if events == 20:
        print("working", flush=True)
