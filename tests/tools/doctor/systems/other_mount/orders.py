"""Takes orders at a path: orders.py PATH."""
import sys

import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind(f"ipc://{sys.argv[1]}")
while True:
    rep.recv()
    rep.send(b"accepted")
