"""Asks for a price ten times a second: till.py NAME."""
import sys
import time

import zmq

dealer = zmq.Context.instance().socket(zmq.DEALER)
dealer.routing_id = sys.argv[1].encode()
dealer.connect("tcp://127.0.0.1:5639")
while True:
    dealer.send(b"apples?")
    while dealer.poll(0):
        dealer.recv()
    time.sleep(0.1)
