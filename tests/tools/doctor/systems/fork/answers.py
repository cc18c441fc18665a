"""Answers questions."""
import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5642")
while True:
    rep.recv()
    rep.send(b"9.99")
