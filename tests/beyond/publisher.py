"""A program that pushes numbers under its name, as fast as it can, until it is killed."""

import sys

import zmq

endpoint, name = sys.argv[1:3]
push = zmq.Context().socket(zmq.PUSH)
push.connect(endpoint)
number = 0
while True:
    push.send(f"{name} {number}".encode())
    number += 1
