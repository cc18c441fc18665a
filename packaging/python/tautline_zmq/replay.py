"""PUB and SUB that detect lost messages and request them again.

`ReliablePub` numbers its messages and keeps the last ones in memory. `ReliableSub` checks the numbers, requests missing
messages, and reports those that are no longer available.

```python
with ReliablePub() as publisher:
    live, ring = publisher.bind("tcp://127.0.0.1:*"), publisher.serve("tcp://127.0.0.1:*")
    publisher.send("prices/gold", b"1980")
    # The subscriber joins late, and begins with the oldest kept message.
    with ReliableSub(live, ring, subscribe=["prices/"], start=Start.OLDEST) as subscriber:
        print(subscriber.recv())
```

The *ring* is the socket of the publisher that answers requests for kept messages. Messages are delivered in order, and
never twice.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AsyncIterator, Deque, Iterable, Iterator, List, NamedTuple, Optional, Union

from tautline_zmq import _native, errors
from tautline_zmq._beyond import Closing, Receiver, SocketOptions, closed, context_of, encoded, named
from tautline_zmq.sockets import ContextBase

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "AsyncReliableSub",
    "Delivery",
    "Lost",
    "ReliablePub",
    "ReliableSub",
    "Restarted",
    "Start",
    "Statistics",
    "Update",
]

# Deliveries that one call of the native module takes at most.
_BATCH = 64


class Update(NamedTuple):
    """A message."""

    topic: bytes
    """Topic of the message."""
    number: int
    """Number of the message: 0 for the publisher's first one, then increasing by one."""
    body: bytes
    """Body of the message."""
    replayed: bool
    """True if the message came from the ring."""


class Lost(NamedTuple):
    """Messages that are no longer available. Their topics are unknown."""

    first: int
    """Number of the first lost message."""
    last: int
    """Number of the last lost message."""


class Restarted(NamedTuple):
    """The publisher has restarted, and its numbers start from 0. The last messages before may be lost."""


Delivery = Union[Update, Lost, Restarted]
"""Item that a subscriber receives."""


class Start(enum.Enum):
    """First message of a subscriber."""

    LIVE = -1
    """The first live message that arrives."""
    OLDEST = -2
    """The oldest message in the ring."""
    LAST_OF_EACH_TOPIC = -3
    """The newest message of each topic in the ring, in the order of their numbers."""


@dataclass(frozen=True)
class Statistics:
    """Counters of a subscriber."""

    live: int
    """Live messages of all topics."""
    repaired: int
    """Missing messages that the ring supplied."""
    lost: int
    """Lost messages."""
    restarts: int
    """Restarts of the publisher."""
    requests: int
    """Requests to the ring."""
    unanswered: int
    """Requests without an answer in time."""
    malformed: int
    """Skipped messages that did not have three parts, the second one of 8 bytes."""
    outdated: int
    """Skipped live messages from before a restart."""


class ReliablePub(Closing):
    """A PUB that numbers its messages and keeps the last ones in memory. Any thread may use it.

    `keep` is the maximum number of kept messages, and `keep_bytes` their maximum size. `options` are options of the PUB
    by their `Option`. Options of connections, such as keys, also apply to the ring. `ring_options` are more options of
    the ring. Without a `context`, it uses `Context.instance()`.

    No method except `wait_for_subscriptions` waits, so a program on asyncio uses this class as well.

    Raises ValueError for a negative number, InvalidArgument for an invalid option, ContextTerminated.
    """

    def __init__(
        self,
        context: Optional[ContextBase[Any]] = None,
        *,
        keep: int = 10_000,
        keep_bytes: int = 64 * 1024 * 1024,
        options: Optional[SocketOptions] = None,
        ring_options: Optional[SocketOptions] = None,
    ) -> None:
        context = context_of(context)
        self._name = "ReliablePub"
        try:
            self._inner = _native.ReliablePub(context, keep, keep_bytes, encoded(options), encoded(ring_options))
        except errors.Error as error:
            raise named(error, self._name) from None
        super().__init__(context, options)

    def bind(self, endpoint: str) -> str:
        """Accepts subscribers at an endpoint. Returns the endpoint with its port.

        Raises AddressInUse, AddressNotAvailable, AccessRefused, InvalidArgument, NotSupported, SocketClosed.
        """
        try:
            bound = self._inner.bind(endpoint)
        except errors.Error as error:
            raise named(error, f"bind on {self._name}") from None
        self._name = f"ReliablePub {bound}"
        return bound

    def connect(self, endpoint: str) -> None:
        """Connects to a subscriber or a proxy. Raises InvalidArgument, AccessRefused, NotSupported, SocketClosed."""
        try:
            self._inner.connect(endpoint)
        except errors.Error as error:
            raise named(error, f"connect on {self._name}") from None

    def serve(self, endpoint: str) -> str:
        """Answers requests for kept messages at an endpoint, in a separate thread. Returns the endpoint with its port.

        Raises the errors of `bind`, and InvalidArgument if the endpoint would be less protected than the PUB.
        """
        try:
            return self._inner.serve(endpoint)
        except errors.Error as error:
            raise named(error, f"serve on {self._name}") from None

    def send(self, topic: Union[str, Buffer], body: Union[str, Buffer]) -> int:
        """Publishes a message, and returns its number: 0 for the first message, then increasing by one.

        Raises SocketClosed, ContextTerminated. A failed message gets no number and is not kept.
        """
        if isinstance(topic, str):
            topic = topic.encode()
        if isinstance(body, str):
            body = body.encode()
        try:
            return self._inner.send(topic, body)
        except errors.Error as error:
            raise named(error, f"send on {self._name}") from None

    def wait_for_subscriptions(self, count: int = 1, timeout: Optional[int] = None) -> bool:
        """Waits for subscriptions to at least `count` different topics. Returns False after `timeout` milliseconds.

        Each `ReliableSub` subscribes to the same topic, so 1 waits for the first one. Raises SocketClosed,
        ContextTerminated.
        """
        try:
            return self._inner.wait_for_subscriptions(count, timeout)
        except errors.Error as error:
            raise named(error, f"wait_for_subscriptions on {self._name}") from None

    @property
    def next_number(self) -> int:
        """Number of the next message. Raises SocketClosed."""
        return self._numbers("next_number", 0)

    @property
    def kept_messages(self) -> int:
        """Number of kept messages. Raises SocketClosed."""
        return self._numbers("kept_messages", 1)

    def _numbers(self, name: str, index: int) -> int:
        try:
            return self._inner.numbers()[index]
        except errors.Error as error:
            raise named(error, f"{name} on {self._name}") from None

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the sockets and drops the kept messages. A second call has no effect.

        `linger` replaces the option LINGER, in milliseconds: published messages are sent in the background for at most
        this time.
        """
        self._inner.close(linger, True)

    def __repr__(self) -> str:
        return f"<{self._name}{', closed' if self.closed else ''}>"


class _Subscriber(Closing):
    """Base class of both subscribers."""

    _kind = "ReliableSub"

    def __init__(
        self,
        publisher: str,
        ring: str,
        context: Optional[ContextBase[Any]] = None,
        *,
        subscribe: Iterable[Union[str, bytes]],
        start: Union[Start, int] = Start.LIVE,
        answer_timeout: int = 1000,
        options: Optional[SocketOptions] = None,
        ring_options: Optional[SocketOptions] = None,
    ) -> None:
        context = context_of(context)
        if isinstance(subscribe, (str, bytes)):
            raise TypeError("subscribe takes a list of prefixes")
        prefixes = [prefix.encode() if isinstance(prefix, str) else bytes(prefix) for prefix in subscribe]
        if isinstance(start, Start):
            first = start.value
        elif 0 <= start < 2**64:
            first = start
        else:
            raise ValueError(f"start={start} must be from 0 to 2**64 - 1, or a Start")
        if answer_timeout < 0:
            raise ValueError(f"answer_timeout={answer_timeout} must not be negative")
        self._name = f"{self._kind} {publisher}"
        try:
            self._inner = _native.ReliableSub(
                context, publisher, ring, prefixes, first, answer_timeout, encoded(options), encoded(ring_options)
            )
        except errors.Error as error:
            raise named(error, self._name) from None
        super().__init__(context)

    @property
    def statistics(self) -> Statistics:
        """Counters. Raises SocketClosed."""
        try:
            return Statistics(**self._inner.statistics())
        except errors.Error as error:
            raise named(error, f"statistics on {self._name}") from None

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def __repr__(self) -> str:
        return f"<{self._name}{', closed' if self.closed else ''}>"


class ReliableSub(_Subscriber):
    """A SUB that checks the numbers of a `ReliablePub`, and requests missing messages from its ring.

    `publisher` and `ring` are the endpoints of the publisher's `bind` and `serve`. `subscribe` lists prefixes of topics;
    `""` stands for all. All messages use the network, whatever the prefixes. `start` is a `Start`, or the number of the
    first message, where a previous subscriber ended. `answer_timeout` is the time limit in milliseconds for the next
    part of the ring's answer: messages that have not arrived by then are lost. `options` and `ring_options` are as in
    `ReliablePub`.

    Several threads may receive; each message goes to one of them. Other threads wait up to 50 ms for a call that waits.

    Raises InvalidArgument for an invalid endpoint or option, or if the ring is less protected than the publisher;
    ContextTerminated.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self._ready: Deque[Delivery] = deque()
        super().__init__(*arguments, **keywords)

    if TYPE_CHECKING:
        __init__ = _Subscriber.__init__

    def recv(self, timeout: Optional[int] = None) -> Delivery:
        """Waits for the next delivery, without limit if `timeout` is `None`.

        Raises TimedOut after `timeout` milliseconds, SocketClosed, ContextTerminated.
        """
        delivery = self._next(timeout)
        if delivery is None:
            raise errors.timed_out(f"recv on {self._name}", "recv", timeout or 0)
        return delivery

    def try_recv(self) -> Optional[Delivery]:
        """Returns the next delivery. `None` if nothing has arrived. Raises SocketClosed, ContextTerminated."""
        return self._next(0)

    def _next(self, timeout: Optional[int]) -> Optional[Delivery]:
        if self.closed:
            raise closed(f"recv on {self._name}")
        while True:
            try:
                return self._ready.popleft()
            except IndexError:
                pass
            try:
                items = self._inner.recv(timeout, _BATCH)
            except errors.Error as error:
                raise named(error, f"recv on {self._name}") from None
            if not items:
                return None
            first, *others = map(_delivery, items)
            self._ready.extend(others)
            return first

    def __iter__(self) -> Iterator[Delivery]:
        """Iterates over the deliveries until the subscriber is closed."""
        while True:
            try:
                delivery = self.recv()
            except errors.SocketClosed:
                return
            yield delivery

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the sockets. A call of another thread ends with SocketClosed. `linger` has no effect."""
        self._inner.close(True)


class AsyncReliableSub(_Subscriber):
    """A `ReliableSub` for asyncio. The arguments and the constructor's errors are the same.

    A helper thread waits for messages, and keeps up to 64 for the tasks. A cancelled `recv` loses no message.
    """

    _kind = "AsyncReliableSub"

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        inner, place = self._inner, f"recv on {self._name}"

        def receive(most: int) -> List[Delivery]:
            try:
                return [_delivery(item) for item in inner.recv(None, most)]
            except errors.Error as error:
                raise named(error, place) from None

        self._receiver: Receiver[Delivery] = Receiver("taut-replay-sub", receive, lambda: inner.closed)

    if TYPE_CHECKING:
        __init__ = _Subscriber.__init__

    async def recv(self, timeout: Optional[int] = None) -> Delivery:
        """Waits for the next delivery, without limit if `timeout` is `None`.

        Raises TimedOut after `timeout` milliseconds, SocketClosed, ContextTerminated.
        """
        return await self._receiver.next(timeout, f"recv on {self._name}")

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        """Iterates over the deliveries until the subscriber is closed."""
        while True:
            try:
                delivery = await self.recv()
            except errors.SocketClosed:
                return
            yield delivery

    def close(self, linger: Optional[int] = None) -> None:
        """Closes the sockets, without waiting. Waiting tasks end with SocketClosed. `linger` has no effect."""
        self._inner.close(False)
        self._receiver.stop()


def _delivery(item: Any) -> Delivery:
    kind, *fields = item
    return (Update, Lost, Restarted)[kind](*fields)
