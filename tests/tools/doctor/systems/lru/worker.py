"""A worker of broker.py: worker.py NAME [--printer-jam]. It waits for its printer."""
import sys
import threading

import zmq

printed = threading.Event()
if "--printer-jam" not in sys.argv:
    printed.set()
dealer = zmq.Context.instance().socket(zmq.DEALER)
dealer.routing_id = sys.argv[1].encode()
dealer.connect("tcp://127.0.0.1:5621")
dealer.send(b"ready")
while True:
    request = dealer.recv_multipart()
    printed.wait()
    dealer.send_multipart(request)
