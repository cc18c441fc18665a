"""Asks ten questions a second. A server that is silent for three quarters of a second counts as lost."""
import time

import zmq

dealer = zmq.Context.instance().socket(zmq.DEALER)
dealer.heartbeat_ivl = 250
dealer.heartbeat_timeout = 750
dealer.connect("tcp://127.0.0.1:5625")
answers = 0
while True:
    dealer.send(b"state?")
    while dealer.poll(0):
        dealer.recv()
        answers += 1
        if answers == 10:
            print("working", flush=True)
    time.sleep(0.1)
