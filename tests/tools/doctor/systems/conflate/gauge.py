"""Publishes the pressure fifty times a second: a topic and a value."""
import itertools
import time

import zmq

pub = zmq.Context.instance().socket(zmq.PUB)
pub.bind("tcp://127.0.0.1:5644")
for number in itertools.count():
    pub.send_multipart([b"pressure", str(1000 + number % 20).encode()])
    time.sleep(0.02)
