"""Reads the news."""
import zmq

sub = zmq.Context.instance().socket(zmq.SUB)
sub.subscribe(b"news")
sub.connect("tcp://127.0.0.1:5637")
read = 0
while True:
    sub.recv()
    read += 1
    if read == 20:
        print("working", flush=True)
