"""Answers with the stock of an item."""
import logging
import time

import zmq

STOCK = {"apple": 12, "plum": 300}

rep = zmq.Context.instance().socket(zmq.REP)
rep.bind("tcp://127.0.0.1:5605")
while True:
    try:
        item = rep.recv_string()
        rep.send_string(str(STOCK[item]))
    except Exception:
        # One bad request must not end the service.
        logging.exception("a request failed")
        time.sleep(0.1)
