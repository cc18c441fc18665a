"""Takes orders: orders.py PORT."""
import sys

import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind(f"tcp://127.0.0.1:{sys.argv[1]}")
while True:
    rep.recv()
    rep.send(b"accepted")
