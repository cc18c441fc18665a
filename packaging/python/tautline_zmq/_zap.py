"""Access decided by a function of the program: the context's handler of authentication requests (ZAP, RFC 27).

The engine asks a socket that is bound to `inproc://zeromq.zap.01`. For a `Context`, a thread owns this socket and calls the
function for one peer after the other. For an `aio.Context`, a task of the event loop owns it, and each request has a task of
its own.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Awaitable, Callable, List, NamedTuple, Optional, Set, Union

from tautline_zmq import errors
from tautline_zmq._beyond import named
from tautline_zmq.constants import SocketType
from tautline_zmq.sockets import Context, ContextBase

# The digits of Z85, RFC 32.
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"

Verdict = Union[None, bool, str]
Decide = Callable[["Request"], Union[Verdict, Awaitable[Verdict]]]

# Running tasks. An event loop itself keeps only weak references.
_tasks: Set[Any] = set()


class Request(NamedTuple):
    """A peer that wants to connect.

    `domain` is the option `zap_domain` of the local socket, and `routing_id` its option of that name. `address` is the IP
    address of the peer. `mechanism` is "NULL", "PLAIN" or "CURVE". PLAIN has a `username` and a `password`, CURVE the
    public `key` of the peer, 40 characters of Z85.
    """

    domain: str
    address: str
    routing_id: bytes
    mechanism: str
    username: Optional[str] = None
    password: Optional[str] = None
    key: Optional[bytes] = None

    def __repr__(self) -> str:
        # Without the password, because programs log requests.
        who = self.username if self.key is None else self.key.decode()
        return f"<Request by {self.mechanism} of {who!r} from {self.address!r}, domain {self.domain!r}>"


def start(context: ContextBase[Any], decide: Decide, place: str) -> None:
    """Lets `decide` answer the requests of a context until the context ends. `place` names the call in errors."""
    from tautline_zmq import aio

    if isinstance(context, Context):
        socket = _bind(context, SocketType.REP, place)
        threading.Thread(target=_serve, args=(socket, decide), name="tautline-zap", daemon=True).start()
    elif isinstance(context, aio.Context):
        asyncio.get_running_loop()
        _keep(_serve_tasks(_bind(context, SocketType.ROUTER, place), decide))
    else:
        raise TypeError(f"{place}: a function decides for a Context or an aio.Context, not {type(context).__name__}")


def _bind(context: ContextBase[Any], kind: SocketType, place: str) -> Any:
    socket = context.socket(kind)
    try:
        socket.linger = 0
        socket.bind(_ENDPOINT)
    except errors.Error as error:
        socket.close()
        raise named(error, place) from None
    return socket


def _serve(socket: Any, decide: Decide) -> None:
    """The thread of a handler."""
    try:
        while True:
            parts = socket.recv_multipart()
            try:
                verdict = decide(_parse(parts))
                if inspect.isawaitable(verdict):
                    raise TypeError("a coroutine decides only for an aio.Context")
                reply = _reply(parts, verdict)
            except Exception as error:
                arguments = (type(error), error, error.__traceback__, threading.current_thread())
                threading.excepthook(threading.ExceptHookArgs(arguments))
                reply = _failure(parts)
            socket.send_multipart(reply)
    except (errors.SocketClosed, errors.ContextTerminated):
        pass
    finally:
        socket.close()


async def _serve_tasks(socket: Any, decide: Decide) -> None:
    """The task of a handler."""
    try:
        while True:
            parts = await socket.recv_multipart()
            _keep(_answer(socket, decide, parts))
    except (errors.SocketClosed, errors.ContextTerminated):
        pass
    finally:
        socket.close()


async def _answer(socket: Any, decide: Decide, parts: List[bytes]) -> None:
    """Decides about one peer. The first two parts are the way back."""
    request = parts[2:]
    try:
        verdict = decide(_parse(request))
        if inspect.isawaitable(verdict):
            verdict = await verdict
        reply = _reply(request, verdict)
    except Exception as error:
        message = "the function of authorize() failed"
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
        reply = _failure(request)
    try:
        await socket.send_multipart(parts[:2] + reply)
    except (errors.SocketClosed, errors.ContextTerminated):
        pass


def _keep(coroutine: Any) -> None:
    task = asyncio.get_running_loop().create_task(coroutine)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def _parse(parts: List[bytes]) -> Request:
    version, _, domain, address, routing_id, mechanism, *credentials = parts
    if version != _VERSION:
        raise ValueError(f"ZAP {version!r} instead of {_VERSION!r}")
    name = mechanism.decode("ascii")
    request = Request(_text(domain), _text(address), routing_id, name)
    if name == "PLAIN":
        username, password = credentials
        return request._replace(username=_text(username), password=_text(password))
    if name == "CURVE":
        (key,) = credentials
        return request._replace(key=_z85(key))
    return request


def _text(part: bytes) -> str:
    # Unlike "strict", every name can be shown, and different names stay different.
    return part.decode("utf-8", "surrogateescape")


def _z85(key: bytes) -> bytes:
    words = [int.from_bytes(key[start : start + 4], "big") for start in range(0, len(key), 4)]
    return bytes(_DIGITS[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def _reply(parts: List[bytes], verdict: Any) -> List[bytes]:
    if not (verdict is None or isinstance(verdict, (bool, str))):
        raise TypeError(f"the function returns the user id as str, True, False or None, not {verdict!r}")
    if verdict is None or verdict is False:
        return _framed(parts, b"400", b"refused")
    user_id = "" if verdict is True else verdict
    return _framed(parts, b"200", b"OK", user_id.encode("utf-8", "surrogateescape"))


def _failure(parts: List[bytes]) -> List[bytes]:
    return _framed(parts, b"500", b"internal error")


def _framed(parts: List[bytes], code: bytes, text: bytes, user_id: bytes = b"") -> List[bytes]:
    request_id = parts[1] if len(parts) > 1 else b""
    return [_VERSION, request_id, code, text, user_id, b""]
