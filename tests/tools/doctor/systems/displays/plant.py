"""Publishes the state of a plant five hundred times a second, and its metrics, which nobody reads. Other sockets wait for commands."""
import itertools
import time

import zmq

context = zmq.Context.instance()
pub = context.socket(zmq.PUB)
pub.bind("tcp://127.0.0.1:5654")
metrics = context.socket(zmq.PUB)
metrics.bind("tcp://127.0.0.1:5655")
router = context.socket(zmq.ROUTER)
router.bind("tcp://127.0.0.1:5656")
for number in itertools.count():
    pub.send_string(f"pressure {1000 + number % 20}")
    metrics.send_string(f"published {number}")
    time.sleep(0.002)
