"""A pyzmq program that reads commands from its standard input, one JSON list a line, and answers each with a line.

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
    """Starts a thread with a REP that answers each request with its process id and the text of the request."""
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


def ask(socket, text):
    """Sends a request and returns its reply. Without RCVTIMEO, repeats a request whose peer has left the name before its reply."""
    if socket.type == zmq.REQ and socket.rcvtimeo < 0:
        socket.req_relaxed = socket.req_correlate = True
        socket.send_string(text)
        while not socket.poll(1000):
            socket.send_string(text)
    else:
        socket.send_string(text)
    return socket.recv_string()


def monitor(name):
    """Starts a monitor with version 3 for events of names and connections."""
    address = f"inproc://monitor-{name}"
    socket = sockets[name]
    call = library.zmq_socket_monitor_versioned
    call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    if call(socket.underlying, address.encode(), MONITOR | zmq.EVENT_CONNECTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, 3, zmq.PAIR):
        raise zmq.ZMQError()
    monitors[name] = context.socket(zmq.PAIR)
    monitors[name].connect(address)


def event(name, wait):
    """Returns the number, value, remote endpoint and reason of the next event, or None after `wait` milliseconds."""
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
        return ask(sockets[arguments[0]], arguments[1])
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
