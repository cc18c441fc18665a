"""Programs that break the rules get exceptions. They do not crash and do not hang."""

import errno
import sys
import sysconfig
import tempfile
import threading
import unittest

import zmq
from support import PATIENCE, ProgramTest, SocketTest

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
START = """
import gc, os, sys, threading, time, zmq
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.bind("inproc://a")
push.connect("inproc://a")
"""


class ExitTest(ProgramTest):
    def test_exit_with_a_thread_in_recv(self):
        self.run_program(START + "threading.Thread(target=pull.recv, daemon=True).start()\ntime.sleep(0.1)")

    def test_exit_while_messages_reach_a_blocked_thread(self):
        self.run_program(
            START + "def run():\n    while True: pull.recv()\n"
            "threading.Thread(target=run, daemon=True).start()\n"
            "def send():\n    while True: push.send(b'x' * 100_000, copy=False, track=True)\n"
            "threading.Thread(target=send, daemon=True).start()\ntime.sleep(0.2)"
        )

    def test_exit_with_open_sockets(self):
        self.run_program(START)

    def test_exit_with_buffers_in_the_engine(self):
        self.run_program(START + "for _ in range(900): push.send(bytes(100_000), copy=False, track=True)")

    def test_exit_by_an_exception_in_atexit(self):
        self.run_program(START + "import atexit\natexit.register(lambda: push.send(bytes(100_000), copy=False))")

    def test_exit_waits_for_a_lock_of_a_thread_in_a_call(self):
        self.run_program(
            "import atexit, threading\nlock = threading.Lock()\natexit.register(lock.acquire)\n"
            + START
            + "def run():\n    while True:\n        with lock:\n            try: pull.recv(zmq.NOBLOCK)\n"
            "            except zmq.Again: pass\n"
            "for _ in range(2): threading.Thread(target=run, daemon=True).start()\ntime.sleep(0.1)"
        )

    def test_exit_while_a_thread_is_in_python_code_of_a_call(self):
        # Each call runs `stay`, which never returns.
        calls = {
            "send_many": "push.send_many(stay() for _ in range(2))",
            "send_multipart": "push.send_multipart(stay() for _ in range(2))",
            "flags": "push.send(b'x', Stays())",
            "option": "push.get(Stays())",
            "room": "pull.recv_into(bytearray(3), nbytes=Stays())",
            "poll": "zmq.zmq_poll(stay() for _ in range(2))",
            "finalizer": "push.send_multipart(Finalized() and b'' for _ in range(2))",
        }
        if sys.version_info >= (3, 12):
            calls["buffer"] = "push.send(Stays())"
            calls["lent buffer"] = "push.send(Stays(), copy=False)"
        for name, call in calls.items():
            with self.subTest(name):
                self.run_program(
                    START + "inside = threading.Event()\ndef stay(*_):\n    inside.set()\n    while True: time.sleep(0.0001)\n"
                    "class Stays:\n    __index__ = __buffer__ = stay\nclass Finalized:\n    __del__ = stay\n"
                    f"threading.Thread(target=lambda: {call}, daemon=True).start()\nassert inside.wait({PATIENCE})"
                )

    @unittest.skipIf(FREE_THREADED, "the thread that made the buffer runs its finalizer")
    def test_exit_while_the_finalizer_of_a_sent_buffer_waits(self):
        self.run_program(
            START + "inside = threading.Event()\nclass Body(bytes):\n    def __del__(self):\n        inside.set()\n"
            "        while True: time.sleep(1000)\n"
            f"push.send(Body(100_000), copy=False)\npull.recv()\nassert inside.wait({PATIENCE})"
        )

    def test_frames_that_outlive_the_interpreter(self):
        self.run_program(START + "push.send(bytes(100_000), copy=False)\nsys.kept = pull.recv(copy=False), push, pull, context")

    def test_dropped_context_is_terminated(self):
        self.run_program(
            "import gc, os, time, zmq, zmq.asyncio\nthreads = lambda: len(os.listdir('/proc/self/task'))\nbefore = threads()\n"
            "for kind in (zmq.Context, zmq.asyncio.Context):\n    context = kind()\n    socket = context.socket(zmq.PUSH)\n"
            "    socket.bind('tcp://127.0.0.1:*')\n    socket.close()\n    assert threads() > before\n    del socket, context\n"
            "    gc.collect()\nwhile threads() > before: time.sleep(0.01)"
        )

    def test_import_in_a_subinterpreter_fails_with_an_exception(self):
        source = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
import tautline_zmq._native
other = interpreters.create()
result = interpreters.run_string(other, '''
try:
    import tautline_zmq._native
except ImportError:
    print("refused", flush=True)
''')
"""
        self.assertEqual(self.run_program(source), "refused")


class ForkTest(ProgramTest):
    def fork(self, child, parent="", before=""):
        return self.run_program(
            START
            + before
            + "child = os.fork()\nif not child:\n"
            + "".join(f"    {line}\n" for line in child.splitlines())
            + "    sys.stdout.flush(); os._exit(0)\n"
            + "status = os.waitpid(child, 0)[1]\nassert status == 0, status\n"
            + parent
            + "\npush.send(b'still')\nassert pull.recv() == b'still'\ncontext.destroy(0)"
        )

    def test_child_uses_a_new_context(self):
        self.fork(
            "push.close(); pull.close(0); context.term()\nother = zmq.Context()\n"
            "a, b = other.socket(zmq.PAIR), other.socket(zmq.PAIR)\n"
            "a.bind('tcp://127.0.0.1:*'); b.connect(a.last_endpoint)\n"
            "a.send(bytes(100_000), copy=False, track=True).wait\nassert len(b.recv()) == 100_000\nother.destroy(0)"
        )

    def test_tracker_works_in_the_child(self):
        self.fork(
            "other = zmq.Context()\na, b = other.socket(zmq.PAIR), other.socket(zmq.PAIR)\n"
            "a.bind('inproc://a'); b.connect('inproc://a')\n"
            "tracker = a.send(bytes(100_000), copy=False, track=True)\nb.recv()\ntracker.wait(30)\nother.destroy(0)"
        )

    def test_every_call_of_the_child_on_a_socket_of_its_parent_fails(self):
        calls = ("recv()", "send(b'x')", "get(zmq.EVENTS)", "bind('inproc://b')", "poll(0)", "recv_multipart()", "recv_batch()")
        out = self.fork(
            f"for call in {calls!r}:\n    try: eval('pull.' + call)\n    except zmq.ZMQError as error: print(error.errno)\n"
            "try: context.socket(zmq.PAIR)\nexcept zmq.ZMQError as error: print(error.errno)"
        )
        self.assertEqual(out.split(), [str(zmq.ENOTSOCK)] * len(calls) + [str(errno.EINTR)])

    def test_child_ends_normally_with_inherited_frames(self):
        self.fork("frame = zmq.Frame(bytes(100_000), copy=False, track=True)\ndel push, pull, context, frame\ngc.collect()")

    def test_child_does_not_take_the_events_of_a_descriptor_of_its_parent(self):
        self.fork(
            "readiness.clear()\ntry: readiness.arm(1)\nexcept zmq.ZMQError: pass\nelse: os._exit(1)\nreadiness.stop()",
            "assert select.select([readiness], [], [], 30)[0]\nassert pull.recv() == b'waited for'",
            "import select\nfrom tautline_zmq._native import Readiness\nreadiness = Readiness(pull)\n"
            "while readiness.arm(1) != Readiness.WAITING: pass\npush.send(b'waited for')\n",
        )

    def test_child_that_ends_in_a_thread_after_a_send_without_a_copy(self):
        # Only the last Python thread of the child ends, so its interpreter does not exit.
        self.run_program(
            f"""
import os, signal, sys, threading, zmq
def fork():
    child = os.fork()
    if not child:
        signal.alarm({PATIENCE})
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://a")
        push.connect("inproc://a")
        push.send(bytes(100_000), copy=False)
        pull.recv()
        context.destroy(0)
        sys.exit()
    statuses.append(os.waitpid(child, 0)[1])
statuses = []
for _ in range(5):
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
assert statuses == [0] * 5, statuses
"""
        )

    @unittest.skipIf(FREE_THREADED, "the finalizer belongs to the thread that made the buffer, which has ended")
    def test_buffer_that_is_released_after_the_last_python_thread_of_a_child(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_program(
                f"""
import os, signal, sys, threading, time, zmq
endpoint = "ipc://{folder}/x"
released, release = os.pipe()
class Body(bytes):
    def __del__(self):
        os.write(release, b"released")
def fork():
    children.append(os.fork())
    if not children[0]:
        signal.alarm({PATIENCE})
        context = zmq.Context()
        push = context.socket(zmq.PUSH)
        push.connect(endpoint)
        push.send(Body(100_000), copy=False)
        sys.kept = context, push
        sys.exit()
children = []
thread = threading.Thread(target=fork)
thread.start()
thread.join()
child = children[0]
os.close(release)
# The first thread of the child has ended, and the engine's threads go on.
while open(f"/proc/{{child}}/stat").read().rpartition(")")[2].split()[0] != "Z": time.sleep(0.01)
with zmq.Context() as context, context.socket(zmq.PULL) as pull:
    pull.bind(endpoint)
    assert len(pull.recv()) == 100_000
    assert os.read(released, 100) == b"released"
os.kill(child, signal.SIGKILL)
assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
            )

    def test_fork_while_threads_are_inside_of_sockets(self):
        self.run_program(
            START
            + """
stop = []
def receive():
    while not stop:
        pull.poll(1)
        pull.recv_batch()
def send():
    while not stop: push.send_many([b"x" * 70_000] * 10, zmq.NOBLOCK)
threads = [threading.Thread(target=target) for target in (receive, send)]
for thread in threads: thread.start()
for _ in range(20):
    child = os.fork()
    if not child:
        other = zmq.Context()
        a, b = other.socket(zmq.PAIR), other.socket(zmq.PAIR)
        a.bind("inproc://b"); b.connect("inproc://b")
        a.send(b"x"); b.recv()
        pull.close(); push.close()
        other.destroy(0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
for thread in threads: thread.join()
context.destroy(0)
"""
        )


class ThreadTest(SocketTest):
    def test_close_ends_the_call_of_another_thread(self):
        for linger in (None, 0):
            _, socket = self.pair()
            errors = []

            def run(socket=socket, errors=errors):
                try:
                    socket.recv()
                except zmq.ZMQError as error:
                    errors.append(error.errno)

            thread = threading.Thread(target=run)
            thread.start()
            thread.join(0.1)
            socket.close(linger)
            thread.join()
            self.assertEqual(errors, [zmq.ENOTSOCK])

    def test_destroy_with_linger_ends_the_calls_of_other_threads(self):
        context = zmq.Context()
        sockets = [context.socket(zmq.PULL) for _ in range(2)]
        errors = []

        def run(socket):
            try:
                socket.recv()
            except zmq.ZMQError as error:
                errors.append(error.errno)

        threads = [threading.Thread(target=run, args=(socket,)) for socket in sockets]
        for thread in threads:
            thread.start()
            thread.join(0.1)
        context.destroy(linger=0)
        for thread in threads:
            thread.join()
        self.assertEqual((errors, context.closed), ([zmq.ENOTSOCK] * 2, True))

    def test_destroy_calls_a_close_without_linger(self):
        lingers = []

        class Socket(zmq.Socket):
            def close(self):
                lingers.append(self.linger)
                super().close()

        for linger in (None, 7):
            context = zmq.Context()
            socket = context.socket(zmq.PUSH, socket_class=Socket)
            socket.linger = 5
            context.destroy(linger)
            self.assertTrue(socket.closed and context.closed)
        self.assertEqual(lingers, [5, 7])

    def test_destroy_warns_of_open_sockets_in_a_block(self):
        with self.assertWarnsRegex(ResourceWarning, "unclosed socket <zmq.Socket") as caught:
            with zmq.Context() as context:
                kept = context.socket(zmq.PUSH)
        self.assertTrue(kept.closed)
        self.assertEqual(caught.filename, __file__)

    def test_term_ends_the_calls_of_other_threads(self):
        context = zmq.Context()
        socket = context.socket(zmq.PULL)
        results = []

        def run():
            try:
                socket.recv()
            except zmq.ContextTerminated:
                results.append("terminated")
                socket.close()

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(0.1)
        context.term()
        thread.join()
        self.assertEqual(results, ["terminated"])

    def test_thread_that_waits_for_its_turn_does_not_stop_the_others(self):
        # The second thread cannot enter the socket until the first one has received.
        first, second = self.pair()
        results = []
        receiving = threading.Thread(target=lambda: results.append(first.recv()))
        receiving.start()
        receiving.join(0.1)
        sending = threading.Thread(target=lambda: first.send(b"reply"))
        sending.start()
        sending.join(0.1)
        second.send(b"x")
        receiving.join()
        sending.join()
        self.assertEqual((results, second.recv()), ([b"x"], b"reply"))

    def test_many_threads_on_one_socket_take_turns(self):
        sender, receiver = self.pair(zmq.PUSH, zmq.PULL)
        count = 2000
        received = []

        def receive():
            while (body := receiver.recv()) != b"end":
                received.append(body)

        def send(number):
            for index in range(count):
                sender.send(b"%d %d" % (number, index))
                if index % 100 == 0:
                    sender.poll(0, zmq.POLLOUT)

        receivers = [threading.Thread(target=receive) for _ in range(3)]
        senders = [threading.Thread(target=send, args=(number,)) for number in range(3)]
        for thread in receivers + senders:
            thread.start()
        for thread in senders:
            thread.join()
        for _ in receivers:
            sender.send(b"end")
        for thread in receivers:
            thread.join()
        self.assertEqual(sorted(received), sorted(b"%d %d" % (n, i) for n in range(3) for i in range(count)))

    def test_two_threads_poll_the_same_sockets_in_different_order(self):
        first, second = self.pair()
        stop = threading.Event()

        def run(sockets):
            while not stop.is_set():
                zmq.zmq_poll([(socket, zmq.POLLIN) for socket in sockets], 1)

        threads = [threading.Thread(target=run, args=(order,)) for order in ([first, second], [second, first])]
        for thread in threads:
            thread.start()
        stop.wait(0.5)
        stop.set()
        for thread in threads:
            thread.join()


class HandleTest(SocketTest):
    def test_object_without_init_has_no_socket(self):
        socket = zmq.Socket.__new__(zmq.Socket)
        for call in (socket.recv, lambda: socket.get(13), lambda: socket.send(b"x"), lambda: socket.bind("inproc://x")):
            with self.assertRaises(zmq.ZMQError):
                call()
        socket._shadow = True
        self.assertEqual(bytes(zmq.Frame.__new__(zmq.Frame)), b"")
        with self.assertRaises(zmq.ZMQError):
            zmq.backend.Context.__new__(zmq.backend.Context)
            zmq.backend.Socket(zmq.backend.Context.__new__(zmq.backend.Context), zmq.PAIR)

    def test_address_that_is_no_socket_is_refused(self):
        for address in (1, 8, 0x1000, id(self), self.context.underlying):
            with self.assertRaises(zmq.ZMQError):
                zmq.Socket.shadow(address)
            if address != self.context.underlying:
                with self.assertRaises(zmq.ZMQError):
                    zmq.Context.shadow(address)

    def test_stale_shadow_does_not_reach_the_next_socket(self):
        socket = self.context.socket(zmq.PAIR)
        shadows = [zmq.Socket.shadow(socket) for _ in range(3)]
        socket.close()
        others = [self.context.socket(zmq.PAIR) for _ in range(100)]
        for shadow in shadows:
            self.assertTrue(shadow.closed)
            shadow.close()
        fresh = zmq.Socket.shadow(others[0])
        fresh.close()
        self.assertTrue(others[0].closed)
        self.assertFalse(any(other.closed for other in others[1:]))

    def test_second_init_is_refused(self):
        socket = self.context.socket(zmq.PAIR)
        with self.assertRaises(RuntimeError):
            socket.__init__(self.context, zmq.PAIR)
        with self.assertRaises(RuntimeError):
            self.context.__init__()

    def test_wrong_arguments_raise(self):
        push, pull = self.pair(zmq.PUSH, zmq.PULL)
        wrong = (
            lambda: push.send("x"),
            lambda: push.send(None),
            lambda: push.send(3),
            lambda: push.send(b"x", "flags"),
            lambda: push.send(b"x", 2**40),
            lambda: push.send(memoryview(bytes(100))[::2]),
            lambda: push.send_multipart(3),
            lambda: push.send_multipart("text"),
            lambda: push.send_multipart(b"bytes"),
            lambda: push.set(zmq.RCVHWM, 2**40),
            lambda: push.set(2**40, 1),
            lambda: push.join("group"),
            lambda: push.monitor("tcp://127.0.0.1:1"),
            lambda: pull.recv_many(-1),
            lambda: zmq.Frame("text"),
            lambda: zmq.Frame(3),
            lambda: zmq.Frame(b"x").get("No-Such-Property"),
            lambda: zmq.Frame(b"x").get(1.5),
            lambda: zmq.Frame(b"x").set("group", "x" * 300),
            lambda: zmq.Frame(b"x").set(1, 1),
            lambda: zmq.proxy(push, 3),
            lambda: zmq.backend.proxy(push, pull, push),
            lambda: zmq.curve_public(b"short"),
            lambda: zmq.Socket(self.context, 99),
            lambda: zmq.backend.Socket(self.context),
            lambda: zmq.backend.Socket(None, zmq.PAIR),
            lambda: zmq.backend.Socket(3, zmq.PAIR),
        )
        for call in wrong:
            with self.assertRaises((zmq.ZMQError, TypeError, ValueError, OverflowError, BufferError)):
                call()

    def test_finalizer_that_closes_a_socket_during_recv(self):
        push, pull = self.pair(zmq.PUSH, zmq.PULL)

        class Closer:
            def __init__(self):
                self.me = self

            def __del__(self):
                pull.close()

        push.send_many([b"x" * 10] * 1000)
        import gc

        gc.set_threshold(1)
        try:
            Closer()
            with self.assertRaises(zmq.ZMQError):
                for _ in range(1001):
                    pull.recv(zmq.NOBLOCK)
        finally:
            gc.set_threshold(700, 10, 10)


if __name__ == "__main__":
    unittest.main()
