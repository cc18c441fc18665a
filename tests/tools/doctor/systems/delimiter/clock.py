"""Tells the time."""
import time

import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5634")
while True:
    rep.recv()
    rep.send_string(time.ctime())
