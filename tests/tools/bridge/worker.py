"""A worker as any other: answers each question after it has written down the last word of its first part."""

import os
import sys

import zmq

endpoint, written, kind = sys.argv[1:4]
worker = zmq.Context().socket(zmq.REP if kind == "REP" else zmq.REQ)
worker.connect(endpoint)
log = os.open(written, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
if kind == "REQ":
    worker.send(b"ready")
while True:
    os.write(log, worker.recv_multipart()[0].split()[-1] + b"\n")
    worker.send(b"done")
