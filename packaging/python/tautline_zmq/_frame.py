"""`Frame`: a message part whose body is not copied."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Optional, Tuple

from tautline_zmq import _native, errors

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Frame", "loan"]


class Frame(_native.Frame):
    """A received message part, with the buffer protocol: `memoryview(frame)`, `numpy.frombuffer(frame)`, `bytes(frame)`.

    The body is freed when the last view of it is gone. `send(frame)` sends it again without a copy. Pickle protocol 5
    hands it out of band, with `buffer_callback`. `numpy.from_dlpack(frame)` and others read it as a tensor of bytes.
    """

    __slots__ = ()

    def __init__(self, data: Optional[Buffer] = None, copy: bool = True) -> None:
        """Makes a frame of an object with the buffer protocol. Without a copy, the object must not change any more."""
        super().__init__(data, copy=copy)

    @property
    def routing_id(self) -> int:
        """Routing id of the peer, for the reply of a SERVER or PEER socket. 0 if there is none."""
        return self._property("routing_id") or 0

    @property
    def group(self) -> str:
        """Group of a message that a DISH has received. Empty for other socket types."""
        return self._property("group") or ""

    @property
    def user_id(self) -> Optional[str]:
        """User id that the authentication gave the peer, or `None`."""
        return self._text("User-Id")

    @property
    def peer_address(self) -> Optional[str]:
        """IP address of the peer, or `None`, as for ipc and inproc."""
        return self._text("Peer-Address")

    @property
    def socket_type(self) -> Optional[str]:
        """Type of the peer's socket, such as "PUSH", or `None` for inproc."""
        return self._text("Socket-Type")

    def _text(self, name: str) -> Optional[str]:
        text: Optional[str] = self._property(name)
        return text

    def _property(self, name: str) -> Any:
        try:
            return self.get(name)
        except TypeError:
            raise
        except Exception:
            return None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Frame, bytes, bytearray)):
            return memoryview(self) == memoryview(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Frame of {len(self)} bytes>"

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        if int(protocol) >= 5 and sys.version_info >= (3, 8):
            import pickle

            return _restore, (pickle.PickleBuffer(self),)
        return _restore, (bytes(memoryview(self)),)


def loan(size: int) -> Frame:
    """Returns a frame of `size` bytes for the program to fill: `memoryview`, `numpy.frombuffer` and the like can write to it.

    Its bytes are zeroes, or those of earlier bodies of this process. `send(frame)` needs no copy over ipc to another
    process of the same user, if the body is large enough. After a `send`, do not write to the frame, because receivers
    would see it. New views are read-only at least as long as the body is queued or a receiver uses it. Older views stay
    writable. Once `memoryview(frame).readonly` is false again, the program may fill and send the frame again.

    Create a context first, because it reads TAUT_IPC_LOANS. In pyzmq on the native backend, `tautline_zmq.backend.loan`
    returns a `zmq.Frame`. Raises ValueError if `size` is negative, and an `Error` with ENOMEM without memory.
    """
    try:
        frame: Frame = _native.loan(Frame, size)
    except Exception as error:
        number = errors.number_of(error)
        if number is None:
            raise
        raise errors.made(number, f"loan of {size} bytes") from None
    return frame


def _restore(body: Buffer) -> Frame:
    return Frame(body, copy=memoryview(body).nbytes < 65536)
