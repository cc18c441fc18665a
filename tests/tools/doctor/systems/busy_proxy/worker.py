"""A worker behind the broker."""
import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.connect("tcp://127.0.0.1:5651")
while True:
    rep.send(rep.recv())
