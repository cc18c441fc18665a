"""Answers with the stock."""
import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5643")
while True:
    rep.recv()
    rep.send(b"300 plums")
