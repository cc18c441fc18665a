"""Shows the latest state five times a second, and has an idle socket for commands."""
import time

import zmq

context = zmq.Context.instance()
command = context.socket(zmq.DEALER)
command.connect("tcp://127.0.0.1:5656")
sub = context.socket(zmq.SUB)
sub.conflate = True
sub.subscribe(b"")
sub.connect("tcp://127.0.0.1:5654")
shown = 0
while True:
    sub.recv()
    shown += 1
    if shown == 5:
        print("working", flush=True)
    time.sleep(0.2)
