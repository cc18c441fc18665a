"""Makes `zmq.asyncio.Socket` faster on any libzmq. `patch` replaces five of its methods.

If pyzmq runs on the native backend, `backend._asyncio` replaces four more, which wait by the
engine's descriptors in place of ZMQ_FD, and `_native.Burst` is the first fast path. The `await` of
the second one spins before it gives way, if the event loop has nothing else to do.

The methods have two fast paths: a call that completes at once, and a single `recv` or
`recv_multipart` that waits. They do the same steps as pyzmq in the same order, but read
fewer options of the socket. Every other case goes to pyzmq's method: several waiting calls,
DONTWAIT, a closed socket, a terminated context, no running loop, overridden internals.

A task that finds a message at each call never lets the other tasks run. So if the calls of a socket
occupy the event loop for BURST calls or for TURN seconds, the `await` of the next one takes a turn
of the loop. Its future is done nevertheless.
"""

import asyncio
import sys
from functools import wraps
from time import monotonic

from tautline_zmq import _library

# None before zmq.asyncio was imported, "" if it is patched, else the reason why it is not.
outcome = None

# Calls that complete in one turn of the event loop before the next turn is awaited. A turn takes
# about 10 us.
BURST = 64
# The same in seconds, for programs that compute between their calls.
TURN = 0.0005
# The clock starts at this number of calls, or at the first call if the last burst took a turn.
FEW = 4
# A receive after this number of calls in one turn expects another message. It tries to receive
# before it reads ZMQ_EVENTS, which takes ten times as long.
EAGER = 2

# pyzmq's major versions whose internals are known here.
VERSIONS = range(25, 28)

_METHODS = ("recv", "recv_multipart", "send", "send_multipart", "_handle_events")
# Internals that the methods use or skip. If a subclass overrides one of them, pyzmq's methods serve
# its sockets.
_INTERNALS = (
    "_Future", "_default_loop", "_get_loop", "_init_io_state", "_clear_io_state", "_add_recv_event", "_add_send_event", "_handle_recv", "_handle_send",
    "_handle_events", "_schedule_remaining_events", "_add_io_state", "_drop_io_state", "_update_handler", "_call_later", "_add_timeout",
    "_remove_finished_future",
)  # fmt: skip


def find_spec(name, path, target):
    """Returns the spec of zmq.asyncio by the other finders. Its loader patches the module after executing it.

    Returns None if the patch is off.
    """
    global outcome
    outcome = _library.why_off("asyncio")
    if outcome:
        return None
    return _library.spec_with(name, path, target, _try_patch)


def _try_patch(module):
    global outcome
    try:
        outcome = patch(module)
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"


def patch(module):
    """Patches the class Socket of zmq.asyncio. Returns "", or the reason why it does not."""
    import zmq
    from zmq import _future

    cls = module.Socket
    if "_tautline" in cls.__dict__:
        return ""
    if int(zmq.__version__.split(".")[0]) not in VERSIONS:
        return f"pyzmq {zmq.__version__} is not one of the versions {VERSIONS[0]} to {VERSIONS[-1]}"
    fields = _future._FutureEvent._fields
    unknown = set(fields) - {"future", "kind", "args", "kwargs", "msg", "timer"}
    missing = [name for name in (*_METHODS, *_INTERNALS) if not hasattr(cls, name)]
    if unknown or missing or cls._Future is not asyncio.Future:
        return f"zmq.asyncio has other internals: {', '.join([*sorted(unknown), *missing])}"
    is_native, waits = False, {}
    if getattr(zmq.backend.Socket, "__module__", "").startswith("tautline_zmq."):
        from tautline_zmq.backend import _asyncio as native

        is_native = True
        waits = native.methods(cls, zmq, _future._AsyncSocket, lambda self: _overrides_nothing(self, cls))
    methods = _methods(cls, zmq, _future, "args" in fields, is_native)
    for name in _METHODS:
        setattr(cls, name, wraps(getattr(cls, name))(methods[name]))
    for name, method in waits.items():
        setattr(cls, name, method)
    cls._tautline = True
    return ""


def _overrides_nothing(self, cls):
    return all(getattr(type(self), name) is getattr(cls, name) for name in _INTERNALS)


class _Burst:
    """The calls of one socket that completed since the last turn of the event loop."""

    __slots__ = ("calls", "few", "long", "until", "eager")

    def __init__(self, eager):
        self.calls = 0
        self.few = FEW
        self.long = False
        self.eager = eager

    def ends(self, loop):
        """Counts a completed call. Returns True if its `await` is to take a turn of the loop."""
        calls = self.calls = self.calls + 1
        if calls <= self.few:
            if calls == self.few:
                self.until = monotonic() + TURN
                loop.call_soon(self.turn)
            return False
        if calls <= BURST and monotonic() <= self.until:
            return False
        self.few = 1
        self.long = True
        return True

    def begin(self):
        """Begins a turn."""
        self.calls = 0

    def turn(self):
        """Runs in the next turn of the loop after the clock started."""
        self.calls = 0
        if not self.long:
            self.few = FEW
        self.long = False


# Tasks that were cancelled while they took a turn: the number of cancellation requests then, and
# the arguments of the error.
_cancelled = {}


class _Turn(asyncio.Future):
    """A future that is done. Its `await` lets the other tasks run once.

    The call has completed, so a cancellation in this turn must not lose its result. It arrives at
    the next `await` that waits, as if it had come a moment later.
    """

    def __await__(self):
        loop = asyncio._get_running_loop()
        task = loop and asyncio.current_task(loop)
        if task:
            last = _cancel_again(task)
            try:
                yield
            except asyncio.CancelledError as error:
                if last:
                    raise
                _cancelled[task] = task.cancelling() if hasattr(task, "cancelling") else 0, error.args
                loop.call_soon(_cancel_again, task)
        return self.result()


def _cancel_again(task):
    """Repeats the cancellation of a task that took a turn. Returns True if the task is cancelled.

    A timeout or a group that has ended withdraws its request. Then this does nothing.
    """
    if task not in _cancelled:
        return False
    requests, arguments = _cancelled.pop(task)
    if not requests:
        return task.cancel(*arguments)
    if task.cancelling() < requests or not task.cancel(*arguments):
        return False
    task.uncancel()
    return True


class _Waiting(asyncio.Future):
    """The future of a call that waits. If it is cancelled, the call leaves its queue."""

    __slots__ = ("queue",)

    def cancel(self, *arguments, **keywords):
        is_cancelled = super().cancel(*arguments, **keywords)
        if is_cancelled:
            _leave(self)
        return is_cancelled


def _leave(future):
    """Takes a call that waits out of its queue."""
    for event in future.queue:
        if event.future is future:
            future.queue.remove(event)
            return


# As pyzmq's futures print it.
_Turn.__name__ = _Turn.__qualname__ = _Waiting.__name__ = _Waiting.__qualname__ = "Future"


def _methods(cls, zmq, _future, has_args, is_native):
    Again, ZMQError, EVENTS, RCVMORE, RCVTIMEO, SNDTIMEO = zmq.Again, zmq.ZMQError, zmq.EVENTS, zmq.RCVMORE, zmq.RCVTIMEO, zmq.SNDTIMEO
    DONTWAIT, SNDMORE, POLLIN, POLLOUT = int(zmq.DONTWAIT), int(zmq.SNDMORE), int(zmq.POLLIN), int(zmq.POLLOUT)
    FutureEvent, NoTimer, Blocking = _future._FutureEvent, _future._NoTimer, zmq.Socket
    Future, running_loop, current_task = asyncio.Future, asyncio._get_running_loop, asyncio.current_task
    slow_recv, slow_recv_multipart, slow_send, slow_send_multipart, slow_handle_events = (getattr(cls, name) for name in _METHODS)
    no_args = {"args": ()} if has_args else {}
    if is_native:
        from tautline_zmq._native import Burst
        from tautline_zmq._native import Socket as NativeSocket

    def burst_of(self):
        """Returns the burst of a socket. False if pyzmq's methods serve the socket."""
        known = type(self._shadow_sock) is Blocking and _overrides_nothing(self, cls)
        if is_native:
            # A program may have replaced a method of zmq.Socket.
            known = known and all(getattr(Blocking, name) is getattr(NativeSocket, name) for name in _METHODS[:4])
        if known and is_native:
            known = Burst(self._shadow_sock)
        elif known:
            try:
                # A REQ or REP that drops an invalid message raises Again in pyzmq, because
                # ZMQ_EVENTS announced the message.
                known = _Burst(sys.maxsize if self._shadow_sock.get(zmq.TYPE) in (zmq.REQ, zmq.REP) else EAGER)
            except ZMQError:
                # The socket is closed.
                return False
        self.__dict__["_burst"] = known
        return known

    class Receiving(_Waiting):
        """The future of a call that waits for a message. Its `await` spins before the task gives way."""

        __slots__ = ("socket",)

        def __await__(self):
            if not self.done():
                spin(self.socket, self)
                if not self.done():
                    self._asyncio_future_blocking = True
                    yield self
            return self.result()

        __iter__ = __await__

    Receiving.__name__ = Receiving.__qualname__ = "Future"

    def spin(self, future):
        """Receives the message of a call that waits alone, if it arrives while the event loop has nothing else to do."""
        state, waiting = self.__dict__, self._recv_futures
        watch, burst = state.get("_watch"), state.get("_burst")
        if not (watch and burst and waiting) or not watch.is_alone(burst.turns):
            return
        if len(waiting) != 1 or self._state != POLLIN or _cancelled or running_loop() is not self._current_loop:
            return
        event = waiting[0]
        if event.future is not future or event.kwargs["track"] or not event.kwargs["copy"]:
            return
        try:
            # After a long burst, the loop takes a turn.
            if burst.ends(self._current_loop) or not watch.spin(POLLIN):
                return
            message = try_receive(self, event)
        except Exception:
            message = None
        if message is None:
            # `_handle_events` reports an error.
            watch.schedule()
        else:
            waiting.popleft()
            state["_state"] = 0
            if event.timer is not NoTimer:
                event.timer.cancel()
                future.remove_done_callback(_leave)
            future.set_result(message)

    def try_receive(self, event):
        """Returns the message of a call, or `None` if none has arrived."""
        socket = self._shadow_sock
        return socket._try_recv() if event.kind == "recv" else socket._try_recv_multipart()

    def wait(self, waiting, kind, message, kwargs, timeout):
        """Queues a call and returns its future."""
        milliseconds = self._shadow_sock.get(timeout)
        if is_native and timeout is RCVTIMEO:
            future = Receiving(loop=running_loop())
            future.socket = self
        else:
            future = _Waiting(loop=running_loop())
        future.queue = waiting
        timer = NoTimer
        if milliseconds >= 0:
            timer = self._add_timeout(future, milliseconds * 1e-3)
            future.add_done_callback(_leave)
        waiting.append(FutureEvent(future=future, kind=kind, kwargs=kwargs, msg=message, timer=timer, **no_args))
        return future

    def queue(self, waiting, kind, kwargs, events, loop):
        """Queues a call that receives, and waits for a message. `events` are the events of the socket."""
        state = self.__dict__
        future = wait(self, waiting, kind, None, kwargs, RCVTIMEO)
        state["_state"] = watched = self._state | POLLIN
        if self._current_loop is not loop:
            # Registers the descriptor.
            self._get_loop()
        watch = state.get("_watch")
        if watch:
            if events & watched or watch.arm(watched):
                watch.schedule()
        elif events & watched:
            self._call_later(0, self._handle_events)
        return future

    def received(burst, loop, socket, kind, message):
        """Returns the future of a message. The parts of a message are received in one turn."""
        future = None
        if burst.ends(loop):
            try:
                if kind != "recv" or not socket.get(RCVMORE):
                    future = _Turn(loop=loop)
                    burst.begin()
            except ZMQError:
                # The context was terminated.
                pass
        if future is None:
            future = Future(loop=loop)
        future.set_result(message)
        return future

    def failed(loop, error):
        future = Future(loop=loop)
        future.set_exception(error)
        return future

    def receive(self, kind, slow, flags, copy, track):
        waiting, state, loop = self._recv_futures, self.__dict__, running_loop()
        burst = state.get("_burst")
        if burst is None:
            burst = burst_of(self)
        if waiting or waiting is None or flags != 0 or not burst or loop is None:
            return slow(self, flags, copy, track)
        socket, events = self._shadow_sock, None
        if (is_native or burst.calls >= burst.eager) and not self._state and not _cancelled:
            try:
                if is_native and copy and not track:
                    message = socket._try_recv() if kind == "recv" else socket._try_recv_multipart()
                    if message is None:
                        events = 0
                else:
                    message = getattr(socket, kind)(flags=DONTWAIT, copy=copy, track=track)
            except Again:
                events = 0
            except ZMQError:
                # ZMQ_EVENTS decides, as in pyzmq.
                pass
            except Exception as error:
                return failed(loop, error)
            else:
                if events is None:
                    return received(burst, loop, socket, kind, message)
        if events is None:
            try:
                events = socket.get(EVENTS)
            except Exception:
                return slow(self, flags, copy, track)
        # A task that is being cancelled waits, and the wait ends at once. It would lose a message.
        if events & POLLIN and not (_cancelled and _cancel_again(current_task(loop))):
            if self._state:
                # Senders wait, and reading ZMQ_EVENTS reset the descriptor.
                self._drop_io_state(POLLIN)
            try:
                message = getattr(socket, kind)(flags=DONTWAIT, copy=copy, track=track)
            except Exception as error:
                return failed(loop, error)
            return received(burst, loop, socket, kind, message)
        return queue(self, waiting, kind, {"flags": flags, "copy": copy, "track": track}, events, loop)

    def complete(self, kind, quick):
        """Receives a message that has arrived, or waits for one. Returns `None` if the caller has to decide."""
        burst = self.__dict__.get("_burst")
        if not burst or self._state or _cancelled:
            return None
        loop = running_loop()
        try:
            future = quick(burst, loop)
        except ZMQError:
            return None
        except Exception as error:
            return failed(loop, error)
        if future is None:
            return queue(self, self._recv_futures, kind, {"flags": 0, "copy": True, "track": False}, 0, loop)
        return future or None

    def recv(self, flags=0, copy=True, track=False):
        if is_native and not flags and copy and not track:
            future = complete(self, "recv", Burst.recv)
            if future is not None:
                return future
        return receive(self, "recv", slow_recv, flags, copy, track)

    def recv_multipart(self, flags=0, copy=True, track=False):
        if is_native and not flags and copy and not track:
            future = complete(self, "recv_multipart", Burst.recv_multipart)
            if future is not None:
                return future
        return receive(self, "recv_multipart", slow_recv_multipart, flags, copy, track)

    def transmit(self, kind, slow, message, flags, copy, track, kwargs):
        waiting, loop = self._send_futures, running_loop()
        burst = self.__dict__.get("_burst")
        if burst is None:
            burst = burst_of(self)
        if waiting or waiting is None or not burst or loop is None:
            return slow(self, message, flags, copy, track, **kwargs)
        at_once = flags | DONTWAIT
        try:
            result = getattr(self._shadow_sock, kind)(message, flags=at_once, copy=copy, track=track, **kwargs)
        except Again as error:
            if not flags & DONTWAIT:
                kwargs.update(flags=flags, copy=copy, track=track)
                future = wait(self, waiting, kind, message, kwargs, SNDTIMEO)
                self._add_io_state(POLLOUT)
                return future
            future = failed(loop, error)
        except Exception as error:
            future = failed(loop, error)
        else:
            # The parts of a message are sent in one turn.
            if burst.ends(loop) and not flags & SNDMORE:
                burst.begin()
                future = _Turn(loop=loop)
            else:
                future = Future(loop=loop)
            future.set_result(result)
        if self._recv_futures:
            # The call may have reset the descriptor.
            self._schedule_remaining_events()
        return future

    def send(self, data, flags=0, copy=True, track=False, **kwargs):
        if is_native and not (flags or track or kwargs or self._state):
            burst = self.__dict__.get("_burst")
            if burst:
                try:
                    future = burst.send(running_loop(), data)
                except ZMQError:
                    future = None
                if future:
                    return future
        return transmit(self, "send", slow_send, data, flags, copy, track, kwargs)

    def send_multipart(self, msg_parts, flags=0, copy=True, track=False, **kwargs):
        return transmit(self, "send_multipart", slow_send_multipart, msg_parts, flags, copy, track, kwargs)

    def handle_native(self, waiting, event):
        try:
            message = try_receive(self, event)
        except Exception:
            return slow_handle_events(self)
        if message is not None:
            waiting.popleft()
            if not waiting:
                self.__dict__["_state"] = 0
            event.timer.cancel()
            event.future.set_result(message)
        if waiting:
            self._schedule_remaining_events()
        return None

    def _handle_events(self, fd=0, events=0):
        """Serves one receiver, because it may cancel the next one, which has another turn."""
        burst, waiting, watched = self.__dict__.get("_burst"), self._recv_futures, self._state
        if not burst or self._send_futures or watched & ~POLLIN:
            return slow_handle_events(self, fd, events)
        burst.begin()
        event = waiting[0] if waiting else None
        if event and (event.kind != "recv" and event.kind != "recv_multipart" or event.future.done()) or watched and not event:
            return slow_handle_events(self, fd, events)
        if is_native and event and event.kwargs["copy"] and not event.kwargs["track"]:
            return handle_native(self, waiting, event)
        try:
            ready = self._shadow_sock.get(EVENTS)
        except Exception:
            return slow_handle_events(self, fd, events)
        if event and ready & POLLIN:
            waiting.popleft()
            if not waiting:
                self.__dict__["_state"] = 0
            event.timer.cancel()
            event.kwargs["flags"] |= DONTWAIT
            try:
                message = getattr(self._shadow_sock, event.kind)(**event.kwargs)
            except Exception as error:
                event.future.set_exception(error)
            else:
                event.future.set_result(message)
            if waiting:
                self._schedule_remaining_events()
        return None

    return {"recv": recv, "recv_multipart": recv_multipart, "send": send, "send_multipart": send_multipart, "_handle_events": _handle_events}
