"""Publishes a hundred quotes a second: quotes.py EXCHANGE PORT."""
import sys
import time

import zmq

pub = zmq.Context.instance().socket(zmq.PUB)
pub.bind(f"tcp://127.0.0.1:{sys.argv[2]}")
while True:
    pub.send_string(f"{sys.argv[1]} 17.25")
    time.sleep(0.01)
