"""Hands out work whenever a worker has room for it."""
import zmq

push = zmq.Context.instance().socket(zmq.PUSH)
push.sndhwm = 50
push.bind("tcp://127.0.0.1:5652")
while True:
    push.send(bytes(20_000))
