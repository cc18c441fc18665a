"""An ordinary subscriber. It logs the last word of each received message."""

import os
import sys

import zmq

endpoint, written = sys.argv[1:3]
subscriber = zmq.Context().socket(zmq.SUB)
subscriber.subscribe(b"")
subscriber.connect(endpoint)
log = os.open(written, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
while True:
    os.write(log, subscriber.recv_multipart()[-1].split()[-1] + b"\n")
