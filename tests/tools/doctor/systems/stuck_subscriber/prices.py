"""Publishes five hundred order books a second."""
import itertools
import time

import zmq

BOOK = ", ".join(f"{100 + level / 8}: {level}" for level in range(500))

pub = zmq.Context.instance().socket(zmq.PUB)
pub.bind("tcp://127.0.0.1:5603")
for number in itertools.count():
    for name in ("EUR", "USD", "GBP", "SEK", "NOK"):
        pub.send_string(f"{name} {number} {BOOK}")
    time.sleep(0.01)
