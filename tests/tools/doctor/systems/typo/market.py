"""Publishes a hundred trades a second."""
import itertools
import time

import zmq

pub = zmq.Context.instance().socket(zmq.PUB)
pub.bind("tcp://127.0.0.1:5622")
for number in itertools.count():
    pub.send_string(f"market.trades.{number % 7} {number}")
    time.sleep(0.01)
