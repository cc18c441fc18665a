"""An ordinary worker. It logs the last word of a request's first part, and then answers the request."""

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
