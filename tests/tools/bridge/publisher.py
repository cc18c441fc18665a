"""A program that pushes numbers under its name until it is killed; ten thousand a second, so that the network holds a few only."""

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
