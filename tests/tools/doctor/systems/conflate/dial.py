"""Shows the pressure: dial.py [--latest]. With --latest, it skips values that are out of date."""
import sys

import zmq

sub = zmq.Context.instance().socket(zmq.SUB)
if "--latest" in sys.argv:
    sub.conflate = True
sub.subscribe(b"")
sub.connect("tcp://127.0.0.1:5644")
whole = parts = 0
while True:
    message = sub.recv_multipart()
    if len(message) == 2:
        whole += 1
    else:
        parts += 1
    if parts == 20:
        print("broken", flush=True)
    if whole == 20:
        print("working", flush=True)
