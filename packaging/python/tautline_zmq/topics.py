"""Publish and subscribe by topic name, wherever publishers and subscribers run.

Each program that joins a *space* publishes to all other members and receives from all of them, without a server in
between.

```python
with Topics(bind=["inproc://lund"]) as station, Topics(connect=["inproc://lund"]) as display:
    display.subscribe("weather.*.wind")
    station.wait_for_subscriptions(1)
    station.publish("weather.lund.wind", "7 m/s")
    print(display.recv())
```

A topic is a text without `*`. `.` and `/` divide it into tokens. In a pattern, `*` matches one token that is not empty.
`**` matches any number of tokens, including zero, and must be the first or the last token.

The guarantees are those of PUB and SUB: the messages of one publisher arrive in order and once. If a subscriber is
too slow, the publisher drops messages. `tautline_zmq.replay` repairs such losses.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterable, Iterator, List, NamedTuple, Optional, Union

from tautline_zmq import _native, errors
from tautline_zmq._beyond import Closing, Receiver, SocketOptions, context_of, encoded, named
from tautline_zmq.sockets import ContextBase

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["AsyncTopics", "Statistics", "Topics", "Update", "endpoint", "matches"]

# Milliseconds between two looks of a task that waits for subscriptions.
_LOOK = 5


class Update(NamedTuple):
    """A message."""

    topic: str
    """Topic of the message."""
    body: bytes
    """Body of the message."""


@dataclass(frozen=True)
class Statistics:
    """Counters."""

    published: int
    """Messages that were published here."""
    dropped: int
    """Messages dropped because a subscriber was at its high-water mark, counted for each subscriber."""
    received: int
    """Messages that were received."""
    filtered: int
    """Messages that arrived but match no pattern."""
    own: int
    """Our own messages that arrived and were skipped."""
    malformed: int
    """Skipped messages that did not have two parts."""


def endpoint(space: str) -> str:
    """Returns the endpoint of a space: `endpoint("prices")` is `name://topics.prices`."""
    return _native.topic_endpoint(space)


def matches(pattern: str, topic: str) -> bool:
    """True if a pattern matches a topic. Raises InvalidArgument for a malformed pattern."""
    try:
        return _native.topic_matches(pattern, topic)
    except errors.Error as error:
        raise named(error, f"pattern {pattern!r}") from None


class _Topics(Closing):
    """Base class of both classes."""

    def __init__(
        self,
        space: Optional[str] = None,
        context: Optional[ContextBase[Any]] = None,
        *,
        bind: Iterable[str] = (),
        connect: Iterable[str] = (),
        receive_own: bool = False,
        publish_options: Optional[SocketOptions] = None,
        subscribe_options: Optional[SocketOptions] = None,
    ) -> None:
        context = context_of(context)
        if isinstance(bind, str) or isinstance(connect, str):
            raise TypeError("bind and connect take lists of endpoints")
        binds, connects = list(bind), list(connect)
        if space is not None:
            binds.append(endpoint(space))
            connects.append(endpoint(space))
        self._name = " ".join([type(self).__name__, *([space] if space is not None else binds or connects)[:1]])
        try:
            self._publisher, self._subscriber = _native.open_topics(
                context, binds, connects, receive_own, encoded(publish_options), encoded(subscribe_options)
            )
        except errors.Error as error:
            raise named(error, self._name) from None
        super().__init__(context, publish_options)

    def publish(self, topic: str, body: Union[str, Buffer]) -> None:
        """Publishes a message to all subscribers of its topic. Never waits.

        Raises InvalidArgument for a topic that is empty or contains `*`, SocketClosed, ContextTerminated.
        """
        try:
            self._publisher.publish(topic, body.encode() if isinstance(body, str) else body)
        except errors.Error as error:
            raise named(error, f"publish on {self._name}") from None

    def subscribe(self, pattern: str) -> None:
        """Subscribes to all topics that match a pattern. Repeated subscriptions to a pattern count as one.

        The subscription takes a moment to reach the publishers. Raises InvalidArgument for a malformed pattern,
        SocketClosed, ContextTerminated.
        """
        try:
            self._subscriber.subscribe(pattern)
        except errors.Error as error:
            raise named(error, f"subscribe on {self._name}") from None

    def unsubscribe(self, pattern: str) -> None:
        """Cancels the subscription to a pattern. Raises InvalidArgument without one, SocketClosed, ContextTerminated."""
        try:
            self._subscriber.unsubscribe(pattern)
        except errors.Error as error:
            raise named(error, f"unsubscribe on {self._name}") from None

    @property
    def patterns(self) -> List[str]:
        """Subscribed patterns. Raises SocketClosed."""
        try:
            return self._subscriber.patterns()
        except errors.Error as error:
            raise named(error, f"patterns on {self._name}") from None

    @property
    def endpoint(self) -> str:
        """Endpoint that was bound last, with its port. Empty without a bound endpoint. Raises SocketClosed."""
        try:
            return self._publisher.last_endpoint()
        except errors.Error as error:
            raise named(error, f"endpoint on {self._name}") from None

    @property
    def statistics(self) -> Statistics:
        """Counters. Raises SocketClosed, ContextTerminated."""
        try:
            published, dropped = self._publisher.statistics()
            return Statistics(published=published, dropped=dropped, **self._subscriber.statistics())
        except errors.Error as error:
            raise named(error, f"statistics on {self._name}") from None

    def _wait_for_subscriptions(self, count: int, timeout: Optional[int]) -> bool:
        try:
            return self._publisher.wait_for_subscriptions(self._subscriber, count, timeout)
        except errors.Error as error:
            raise named(error, f"wait_for_subscriptions on {self._name}") from None

    @property
    def closed(self) -> bool:
        return self._publisher.closed

    def __repr__(self) -> str:
        return f"<{self._name}{', closed' if self.closed else ''}>"


class Topics(_Topics):
    """A publisher and a subscriber of a space.

    `space` is the name of a space. It needs a names file (`Context.set_names`, or TAUT_NAMES in the environment).
    Instead of it, or in addition, `bind` lists endpoints for the publisher, and `connect` lists endpoints for the
    subscriber. If `receive_own` is true, it also receives its own messages. `publish_options` and `subscribe_options` are
    options of the PUB and of the SUB by their `Option`. Without a `context`, it uses `Context.instance()`.

    One thread may publish while another one receives. Raises the errors of `Socket.bind` and `Socket.connect`.
    """

    def recv(self, timeout: Optional[int] = None) -> Update:
        """Waits for the next message, without limit if `timeout` is `None`.

        Raises TimedOut after `timeout` milliseconds, SocketClosed, ContextTerminated.
        """
        update = self._next(timeout)
        if update is None:
            raise errors.timed_out(f"recv on {self._name}", "recv", timeout or 0)
        return update

    def try_recv(self) -> Optional[Update]:
        """Returns the next message. `None` if nothing has arrived. Raises SocketClosed, ContextTerminated."""
        return self._next(0)

    def _next(self, timeout: Optional[int]) -> Optional[Update]:
        try:
            items = self._subscriber.recv(timeout, 1)
        except errors.Error as error:
            raise named(error, f"recv on {self._name}") from None
        return Update(*items[0]) if items else None

    def wait_for_subscriptions(self, count: int = 1, timeout: Optional[int] = None) -> bool:
        """Waits until subscribers have subscribed to at least `count` different prefixes of topics.

        The prefix of a pattern is the text before its first `*`. Messages that are published later reach these
        subscribers. Returns False after `timeout` milliseconds; `None` waits without limit. Raises SocketClosed,
        ContextTerminated.
        """
        return self._wait_for_subscriptions(count, timeout)

    def __iter__(self) -> Iterator[Update]:
        """Iterates over the messages until the object is closed."""
        while True:
            try:
                update = self.recv()
            except errors.SocketClosed:
                return
            yield update

    def close(self, linger: Optional[int] = None) -> None:
        """Closes both sockets. A call of another thread ends with SocketClosed.

        `linger` replaces the PUB's option LINGER, in milliseconds.
        """
        self._publisher.close(linger, True)
        self._subscriber.close(True)


class AsyncTopics(_Topics):
    """A `Topics` for asyncio. The arguments and the constructor's errors are the same.

    A helper thread waits for messages, and keeps up to 64 for the tasks, also after `unsubscribe`. A cancelled
    `recv` loses no message. While a task waits in `recv`, `subscribe`,
    `unsubscribe`, `patterns` and `statistics` may block the event loop for up to 50 ms.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        subscriber, place = self._subscriber, f"recv on {self._name}"

        def receive(most: int) -> List[Update]:
            try:
                return [Update(*item) for item in subscriber.recv(None, most)]
            except errors.Error as error:
                raise named(error, place) from None

        self._receiver: Receiver[Update] = Receiver("taut-topics-sub", receive, lambda: subscriber.closed)

    if TYPE_CHECKING:
        __init__ = _Topics.__init__

    async def recv(self, timeout: Optional[int] = None) -> Update:
        """Waits for the next message, without limit if `timeout` is `None`.

        Raises TimedOut after `timeout` milliseconds, SocketClosed, ContextTerminated.
        """
        return await self._receiver.next(timeout, f"recv on {self._name}")

    async def wait_for_subscriptions(self, count: int = 1, timeout: Optional[int] = None) -> bool:
        """See `Topics.wait_for_subscriptions`. It looks every 5 ms."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None or timeout < 0 else loop.time() + timeout / 1000
        while not self._wait_for_subscriptions(count, 0):
            if deadline is not None and loop.time() >= deadline:
                return False
            await asyncio.sleep(_LOOK / 1000)
        return True

    async def __aiter__(self) -> AsyncIterator[Update]:
        """Iterates over the messages until the object is closed."""
        while True:
            try:
                update = await self.recv()
            except errors.SocketClosed:
                return
            yield update

    def close(self, linger: Optional[int] = None) -> None:
        """Closes both sockets, without waiting. Waiting tasks end with SocketClosed.

        `linger` replaces the PUB's option LINGER, in milliseconds.
        """
        self._publisher.close(linger, False)
        self._subscriber.close(False)
        self._receiver.stop()
