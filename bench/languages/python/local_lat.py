"""Answers each request with itself."""

import zmq

from common import arguments, check, secure

endpoint, size, rounds, warm_up = arguments()
context = zmq.Context()
socket = context.socket(zmq.REP)
secure(socket)
socket.bind(endpoint)
for number in range(warm_up + rounds):
    message = socket.recv()
    check(message, size, number)
    socket.send(message)
socket.close()
context.term()
