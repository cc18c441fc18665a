"""Tells prices: prices.py [--slow]. With --slow, the tenth price takes three seconds."""
import sys
import time

import zmq

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5640")
prices = 0
while True:
    rep.recv()
    prices += 1
    if prices == 10 and "--slow" in sys.argv:
        time.sleep(3)
    rep.send(b"9.99")
