"""Publishes fifty news a second."""
import time

import zmq

pub = zmq.Context.instance().socket(zmq.PUB)
pub.connect("tcp://127.0.0.1:5636")
while True:
    pub.send(b"news: rain")
    time.sleep(0.02)
