"""A pyzmq program that does what its standard input says, one JSON list a line, and answers each with a line.

["socket", "a", "PULL", {"RCVTIMEO": 1000}], ["bind", "a", "name://orders"], ["send", "a", "text"], ["recv", "a"], ... An answer is
{"value": ...} or {"errno": "EINVAL"}.
"""

import ctypes
import errno
import json
import os
import struct
import sys
import threading

import zmq

context = zmq.Context()
sockets, threads, counts, monitors = {}, [], {}, {}
MONITOR = 0x20000000
OPTION_NAMES = 0x54410009
library = ctypes.CDLL(os.environ["LD_PRELOAD"]) if "LD_PRELOAD" in os.environ else None


def echo(endpoint, call):
    """A REP of its own thread that answers with its process and what it was asked."""
    ready = threading.Event()

    def serve():
        socket = context.socket(zmq.REP)
        getattr(socket, call)(endpoint)
        ready.set()
        try:
            while True:
                socket.send_string(f"{os.getpid()} {socket.recv_string()}")
        except zmq.ContextTerminated:
            socket.close(0)

    threads.append(threading.Thread(target=serve))
    threads[-1].start()
    ready.wait()


def monitor(name):
    """Events of version 3, of names and connections."""
    address = f"inproc://monitor-{name}"
    socket = sockets[name]
    call = library.zmq_socket_monitor_versioned
    call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    if call(socket.underlying, address.encode(), MONITOR | zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, 3, zmq.PAIR):
        raise zmq.ZMQError()
    monitors[name] = context.socket(zmq.PAIR)
    monitors[name].connect(address)


def event(name, wait):
    """The next event: its number, value, remote endpoint and reason; None after `wait` milliseconds without one."""
    if not monitors[name].poll(wait):
        return None
    parts = monitors[name].recv_multipart()
    number, count = struct.unpack("=QQ", parts[0] + parts[1])
    values = [struct.unpack("=Q", part)[0] for part in parts[2 : 2 + count]]
    rest = [part.decode(errors="replace") for part in parts[2 + count :]]
    return [number, values[0], rest[1], rest[5]]


def do(op, *arguments):
    if op == "socket":
        name, kind, options = arguments
        socket = sockets[name] = context.socket(getattr(zmq, kind))
        socket.linger = 0
        for option, value in options.items():
            socket.set(getattr(zmq, option), value.encode() if isinstance(value, str) else value)
    elif op == "send":
        sockets[arguments[0]].send_string(arguments[1])
    elif op == "recv":
        return sockets[arguments[0]].recv_string()
    elif op == "ask":
        sockets[arguments[0]].send_string(arguments[1])
        return sockets[arguments[0]].recv_string()
    elif op == "last":
        return sockets[arguments[0]].last_endpoint.decode().rstrip("\0")
    elif op == "close":
        sockets.pop(arguments[0]).close(0)
    elif op == "echo":
        echo(*arguments)
    elif op == "monitor":
        monitor(*arguments)
    elif op == "event":
        return event(*arguments)
    elif op == "names":
        path = arguments[0].encode()
        if library.zmq_ctx_set_ext(ctypes.c_void_p(context.underlying), OPTION_NAMES, path, len(path)):
            raise zmq.ZMQError()
    else:
        getattr(sockets[arguments[0]], op)(*arguments[1:])
    return True


for line in sys.stdin:
    try:
        answer = {"value": do(*json.loads(line))}
    except zmq.ZMQError as error:
        answer = {"errno": errno.errorcode.get(error.errno, error.errno)}
    print(json.dumps(answer), flush=True)
for socket in [*sockets.values(), *monitors.values()]:
    socket.close(0)
context.term()
