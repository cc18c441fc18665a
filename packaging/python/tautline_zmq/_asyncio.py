"""Makes `zmq.asyncio.Socket` faster on any libzmq. `patch` replaces five of its methods; everything else stays pyzmq's.

pyzmq queues an event for each call and asks the socket for its options and its readiness several times. The methods here
first try the call without waiting. If it succeeds, the future is done at once. Else the call waits as in pyzmq, by ZMQ_FD.

While a task finds a message at each call, the other tasks do not run. So after BURST such calls in a row, a call waits for the
next turn of the event loop, although the socket is ready.
"""

import asyncio
import sys

from tautline_zmq import _library

# None before zmq.asyncio was imported, "" if it is patched, else the reason why it is not.
outcome = None

# Calls of a socket in one direction that complete at once before one of them waits for the next turn of the event loop.
# The time of a turn, some 10 us, is then a small part of the time of 64 messages.
BURST = 64

# pyzmq's major versions whose internals are known here.
VERSIONS = range(25, 28)

_METHODS = ("recv", "recv_multipart", "send", "send_multipart", "_handle_events")


def find_spec(name, path, target):
    """Returns the spec of zmq.asyncio by the other finders. Its loader patches the module after executing it. None if turned off."""
    global outcome
    outcome = _library.why_off("asyncio")
    if outcome:
        return None
    for finder in sys.meta_path:
        if getattr(finder, "__name__", "") != "_BeforeZmq" and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                break
    else:
        return None
    execute = spec.loader.exec_module

    def exec_module(module):
        global outcome
        execute(module)
        try:
            outcome = patch(module)
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"

    spec.loader.exec_module = exec_module
    return spec


def patch(module):
    """Patches the class Socket of the module zmq.asyncio. Returns the reason if pyzmq is not one of the known versions, else ""."""
    import zmq
    from zmq import _future

    cls = module.Socket
    if "_tautline" in cls.__dict__:
        return ""
    if int(zmq.__version__.split(".")[0]) not in VERSIONS:
        return f"pyzmq {zmq.__version__} is not one of the versions {VERSIONS[0]} to {VERSIONS[-1]}"
    fields = _future._FutureEvent._fields
    unknown = set(fields) - {"future", "kind", "args", "kwargs", "msg", "timer"}
    missing = [name for name in (*_METHODS, "_get_loop", "_add_timeout", "_add_io_state", "_remove_finished_future") if not hasattr(cls, name)]
    if unknown or missing:
        return f"zmq.asyncio has other internals: {', '.join([*sorted(unknown), *missing])}"
    for name, method in _methods(cls, zmq, _future, "args" in fields).items():
        method.__doc__ = getattr(cls, name).__doc__
        method.__qualname__ = f"Socket.{name}"
        setattr(cls, name, method)
    cls._tautline = True
    return ""


def _methods(cls, zmq, _future, has_args):
    from functools import partial

    Again, ZMQError, EFSM, EVENTS = zmq.Again, zmq.ZMQError, zmq.EFSM, zmq.EVENTS
    DONTWAIT, POLLIN, POLLOUT = int(zmq.DONTWAIT), int(zmq.POLLIN), int(zmq.POLLOUT)
    RCVTIMEO, SNDTIMEO = zmq.RCVTIMEO, zmq.SNDTIMEO
    FutureEvent, NoTimer = _future._FutureEvent, _future._NoTimer
    Future, get_running_loop = asyncio.Future, asyncio.get_running_loop
    slow_recv, slow_recv_multipart, slow_send, slow_send_multipart, slow_handle_events = (getattr(cls, name) for name in _METHODS)
    no_args = {"args": ()} if has_args else {}

    def event_of(self, future, kind, kwargs, message, timeout):
        milliseconds = self._shadow_sock.get(timeout)
        timer = self._add_timeout(future, milliseconds * 1e-3) if milliseconds >= 0 else NoTimer
        return FutureEvent(future=future, kind=kind, kwargs=kwargs, msg=message, timer=timer, **no_args)

    def remove_when_done(self, future, events, event):
        future.add_done_callback(partial(self._remove_finished_future, event_list=events, event=event))

    def receive(self, kind, slow, flags, copy, track):
        waiting = self._recv_futures
        while waiting and waiting[0].future.done():
            waiting.popleft()
        if waiting or waiting is None:
            # Others wait, and come first. Or the socket is closed.
            return slow(self, flags, copy, track)
        try:
            loop = get_running_loop()
        except RuntimeError:
            return slow(self, flags, copy, track)
        future = Future(loop=loop)
        state = self.__dict__
        burst = state.get("_receive_burst", 0)
        # In pyzmq, a REQ may wait for the reply before it sends its request.
        out_of_turn = False
        if burst < BURST or flags & DONTWAIT:
            try:
                message = getattr(self._shadow_sock, kind)(flags | DONTWAIT, copy, track)
            except Exception as error:
                out_of_turn = isinstance(error, ZMQError) and error.errno == EFSM
                if flags & DONTWAIT or not (out_of_turn or isinstance(error, Again)):
                    future.set_exception(error)
                    return future
            else:
                future.set_result(message)
                state["_receive_burst"] = burst + 1
                if self._send_futures:
                    # The call may have used up the event of ZMQ_FD that a sender waits for.
                    self._schedule_remaining_events()
                return future
        state["_receive_burst"] = 0
        waiting.append(event_of(self, future, kind, {"flags": flags, "copy": copy, "track": track}, None, RCVTIMEO))
        state["_state"] = self._state | POLLIN
        # Registers ZMQ_FD with this loop, if it is not yet.
        self._get_loop()
        if burst >= BURST:
            loop.call_soon(self._handle_events)
        elif out_of_turn or self._send_futures:
            self._schedule_remaining_events()
        return future

    def recv(self, flags=0, copy=True, track=False):
        return receive(self, "recv", slow_recv, flags, copy, track)

    def recv_multipart(self, flags=0, copy=True, track=False):
        return receive(self, "recv_multipart", slow_recv_multipart, flags, copy, track)

    def transmit(self, kind, slow, message, flags, copy, track, kwargs):
        if self._send_futures or self._send_futures is None:
            return slow(self, message, flags, copy, track, **kwargs)
        try:
            loop = get_running_loop()
        except RuntimeError:
            return slow(self, message, flags, copy, track, **kwargs)
        future = Future(loop=loop)
        state = self.__dict__
        burst = state.get("_send_burst", 0)
        # The parts of a message stay together.
        if burst < BURST or flags:
            try:
                future.set_result(getattr(self._shadow_sock, kind)(message, flags | DONTWAIT, copy, track, **kwargs))
            except Again as error:
                if flags & DONTWAIT:
                    future.set_exception(error)
                    return future
            except Exception as error:
                future.set_exception(error)
                return future
            else:
                state["_send_burst"] = burst + 1
                if self._recv_futures:
                    # The call may have used up the event of ZMQ_FD that a receiver waits for.
                    self._schedule_remaining_events()
                return future
        state["_send_burst"] = 0
        event = event_of(self, future, kind, dict(kwargs, flags=flags, copy=copy, track=track), message, SNDTIMEO)
        self._send_futures.append(event)
        remove_when_done(self, future, self._send_futures, event)
        # Schedules the event at once if the socket has room.
        self._add_io_state(POLLOUT)
        return future

    def send(self, data, flags=0, copy=True, track=False, **kwargs):
        return transmit(self, "send", slow_send, data, flags, copy, track, kwargs)

    def send_multipart(self, msg_parts, flags=0, copy=True, track=False, **kwargs):
        return transmit(self, "send_multipart", slow_send_multipart, msg_parts, flags, copy, track, kwargs)

    def _handle_events(self, fd=0, events=0):
        if self._send_futures:
            return slow_handle_events(self, fd, events)
        waiting = self._recv_futures
        if not waiting:
            # Resets ZMQ_FD. Else the event loop would report it again and again.
            if waiting is not None and not self._shadow_sock.closed:
                self._shadow_sock.get(EVENTS)
            return None
        while waiting:
            event = waiting[0]
            future, kind = event.future, event.kind
            if future.done():
                waiting.popleft()
                continue
            if kind != "recv" and kind != "recv_multipart":
                return slow_handle_events(self, fd, events)
            kwargs = event.kwargs
            try:
                message = getattr(self._shadow_sock, kind)(kwargs["flags"] | DONTWAIT, kwargs["copy"], kwargs["track"])
            except Again:
                break
            except Exception as error:
                if isinstance(error, ZMQError) and error.errno == EFSM:
                    self._shadow_sock.get(EVENTS)
                    break
                waiting.popleft()
                event.timer.cancel()
                future.set_exception(error)
            else:
                waiting.popleft()
                event.timer.cancel()
                future.set_result(message)
        if not waiting:
            self.__dict__["_state"] = self._state & ~POLLIN
        return None

    return {"recv": recv, "recv_multipart": recv_multipart, "send": send, "send_multipart": send_multipart, "_handle_events": _handle_events}
