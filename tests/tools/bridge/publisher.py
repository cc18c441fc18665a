"""Pushes its name and a rising number until it is killed. It sends 10,000 messages a second, so the network holds only a few of them."""

import sys
import time

import zmq

endpoint, name = sys.argv[1:3]
push = zmq.Context().socket(zmq.PUSH)
push.connect(endpoint)
number = 0
while True:
    push.send(f"{name} {number}".encode())
    number += 1
    if number % 100 == 0:
        time.sleep(0.01)
