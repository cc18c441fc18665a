"""pyzmq 25, which has parts of its interface only in extension modules. PYZMQ_25 names a folder that contains this version."""

import os
import unittest

from support import ProgramTest

START = """
import zmq
assert zmq.pyzmq_version_info()[0] == 25, zmq.__version__
from tautline_zmq import _native
assert issubclass(zmq.Socket, _native.Socket)
context = zmq.Context()
"""

QUEUE = (
    START
    + """
from zmq.devices import ThreadMonitoredQueue, monitored_queue, monitoredqueue
import zmq.devices.monitoredqueue
assert zmq.devices.monitoredqueue is monitoredqueue and monitoredqueue.monitored_queue is monitored_queue
device = ThreadMonitoredQueue(zmq.PAIR, zmq.PAIR, zmq.PUSH)
device.context_factory = lambda: context
device.bind_in("inproc://in"), device.bind_out("inproc://out"), device.bind_mon("inproc://reports")
device.start()
sockets = [context.socket(kind) for kind in (zmq.PAIR, zmq.PAIR, zmq.PULL)]
for socket, name in zip(sockets, ("in", "out", "reports")):
    socket.rcvtimeo = 30_000
    socket.connect("inproc://" + name)
client, service, reports = sockets
client.send_multipart([b"a", b"b"])
print(service.recv_multipart(), reports.recv_multipart())
service.send(b"c")
print(client.recv_multipart(), reports.recv_multipart())
for socket in sockets:
    socket.close(0)
context.term()
device.join(30)
print(device.done)
"""
)


@unittest.skipUnless(os.environ.get("PYZMQ_25"), "pyzmq 25 is not installed")
class Pyzmq25Test(ProgramTest):
    def setUp(self):
        path = os.pathsep.join((os.environ["PYZMQ_25"], os.environ.get("PYTHONPATH", "")))
        self.environment = {**os.environ, "PYTHONPATH": path}

    def test_monitored_queue_forwards(self):
        self.assertEqual(
            self.run_program(QUEUE).splitlines(),
            ["[b'a', b'b'] [b'in', b'a', b'b']", "[b'c'] [b'out', b'c']", "True"],
        )

    def test_text_of_a_frame_is_its_body(self):
        self.assertEqual(self.run_program(START + "print(str(zmq.Frame('grün'.encode())) == 'grün')"), "True")


if __name__ == "__main__":
    unittest.main()
