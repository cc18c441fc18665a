"""Converts films. A film takes twenty seconds."""
import time

import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5653")
while True:
    rep.recv()
    time.sleep(20)
    rep.send(b"converted")
