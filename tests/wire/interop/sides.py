"""The two sides of an exchange, with the same methods: Ours (our library through ctypes) and Theirs (pyzmq)."""

import ctypes
import os

import zmq

TIMEOUT_MS = 60_000


def own_tcp():
    """Returns a wildcard endpoint of a loopback address that only this process uses, so a port of it can be bound again."""
    high, low = os.getpid() >> 8 & 255, os.getpid() & 255
    return f"tcp://127.255.{high}.{low % 255}:*"


class Theirs:
    """libzmq 4.3.5 from the pyzmq wheel."""

    def __init__(self):
        self.context = zmq.Context()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.destroy(linger=0)

    def socket(self, kind):
        return TheirSocket(self.context.socket(kind))


class TheirSocket:
    def __init__(self, socket):
        self.socket = socket
        socket.rcvtimeo = socket.sndtimeo = TIMEOUT_MS
        socket.linger = 0

    def bind(self, endpoint):
        self.socket.bind(endpoint)
        return self.socket.last_endpoint.rstrip(b"\0").decode()

    def connect(self, endpoint):
        self.socket.connect(endpoint)

    def set(self, option, value):
        self.socket.setsockopt(option, value)

    def send(self, *parts):
        self.socket.send_multipart(parts)

    def recv(self):
        return self.socket.recv_multipart()

    def readable(self, timeout_ms):
        return self.socket.poll(timeout_ms, zmq.POLLIN) != 0

    def close(self):
        self.socket.close()


class Failure(Exception):
    """A function of our library returned an error."""


class Ours:
    """The library under test, loaded by its path beside the library of pyzmq."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND, use_errno=True)
        for name in ("zmq_ctx_new", "zmq_socket", "zmq_msg_data"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.zmq_msg_size.restype = ctypes.c_size_t
        self.lib.zmq_strerror.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p(self.lib.zmq_ctx_new())
        self.sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Closes the sockets that the case left open, and waits for the end of the context."""
        for socket in self.sockets:
            socket.close()
        self.check(self.lib.zmq_ctx_term(self.context), "zmq_ctx_term")

    def socket(self, kind):
        return OurSocket(self, kind)

    def check(self, result, what):
        if result is None or result == -1:
            code = self.lib.zmq_errno()
            raise Failure(f"{what}: {self.lib.zmq_strerror(code).decode()} ({code})")
        return result


class OurSocket:
    def __init__(self, side, kind):
        self.side = side
        self.lib = side.lib
        handle = self.lib.zmq_socket(side.context, int(kind))
        self.handle = ctypes.c_void_p(side.check(handle, "zmq_socket"))
        side.sockets.append(self)
        self.set(zmq.RCVTIMEO, TIMEOUT_MS)
        self.set(zmq.SNDTIMEO, TIMEOUT_MS)
        self.set(zmq.LINGER, 0)

    def call(self, name, *arguments):
        return self.side.check(getattr(self.lib, name)(self.handle, *arguments), name)

    def bind(self, endpoint):
        self.call("zmq_bind", endpoint.encode())
        buffer, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        self.call("zmq_getsockopt", int(zmq.LAST_ENDPOINT), buffer, ctypes.byref(size))
        return buffer.value.decode()

    def connect(self, endpoint):
        self.call("zmq_connect", endpoint.encode())

    def set(self, option, value):
        if isinstance(value, int):
            kind = ctypes.c_int64 if option == zmq.MAXMSGSIZE else ctypes.c_int
            value = bytes(kind(value))
        self.call("zmq_setsockopt", int(option), value, ctypes.c_size_t(len(value)))

    def send(self, *parts):
        for part in parts[:-1]:
            self.call("zmq_send", part, ctypes.c_size_t(len(part)), int(zmq.SNDMORE))
        self.call("zmq_send", parts[-1], ctypes.c_size_t(len(parts[-1])), 0)

    def recv(self):
        parts, more = [], True
        message = (ctypes.c_uint64 * 8)()  # 64 bytes, aligned to 8
        while more:
            self.lib.zmq_msg_init(message)
            self.side.check(self.lib.zmq_msg_recv(message, self.handle, 0), "zmq_msg_recv")
            size = self.lib.zmq_msg_size(message)
            parts.append(ctypes.string_at(self.lib.zmq_msg_data(message), size))
            more = self.lib.zmq_msg_more(message)
            self.lib.zmq_msg_close(message)
        return parts

    def property_of_next(self, sender, name):
        """Returns the result of zmq_msg_gets for the next message. If `sender` is given, it sends this message first."""
        if sender:
            sender.send(b"message")
        message = (ctypes.c_uint64 * 8)()
        self.lib.zmq_msg_init(message)
        self.side.check(self.lib.zmq_msg_recv(message, self.handle, 0), "zmq_msg_recv")
        self.lib.zmq_msg_gets.restype = ctypes.c_char_p
        value = self.lib.zmq_msg_gets(message, name.encode())
        self.lib.zmq_msg_close(message)
        return value

    def readable(self, timeout_ms):
        class Item(ctypes.Structure):
            _fields_ = [("socket", ctypes.c_void_p), ("fd", ctypes.c_int),
                        ("events", ctypes.c_short), ("revents", ctypes.c_short)]

        item = Item(self.handle, 0, int(zmq.POLLIN), 0)
        return self.side.check(self.lib.zmq_poll(ctypes.byref(item), 1, ctypes.c_long(timeout_ms)), "zmq_poll") > 0

    def monitor(self):
        """Starts to report all events. Returns the socket that receives them."""
        endpoint = f"inproc://monitor-{self.handle.value}"
        self.call("zmq_socket_monitor", endpoint.encode(), 0xFFFF)
        pair = OurSocket(self.side, zmq.PAIR)
        pair.connect(endpoint)
        return pair

    def close(self):
        if self.handle:
            self.call("zmq_close")
            self.handle = None


def wait_for_event(monitor, *wanted):
    """Reads events until one of `wanted` arrives, and returns its value."""
    while True:
        head, _endpoint = monitor.recv()
        event, value = int.from_bytes(head[:2], "little"), int.from_bytes(head[2:6], "little")
        if event in wanted:
            return value
