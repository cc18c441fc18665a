"""Who may connect: a list of accepted peers or a function of the program, and options of sockets for PLAIN and CURVE.

```python
server, alice = curve_keypair(), curve_keypair()
authorize(context, AllowList(keys={alice.public: "alice"}))
with context.socket(PULL) as pull:
    curve_server(pull, server.secret)
    pull.bind("tcp://127.0.0.1:5555")
```

The list decides for every socket of its context that is a server of CURVE or PLAIN, or has a ZAP domain. A function in its
place gets each `Request`, and returns the user id of the peer or `None`. Policies (`Context.set_policy`) need no program:
docs/operate/policy.md.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Union

from tautline_zmq import _native, _zap, errors
from tautline_zmq._beyond import OptionValue, named
from tautline_zmq._zap import Decide, Request
from tautline_zmq.constants import Option
from tautline_zmq.security import Key, KeyPair, curve_keypair
from tautline_zmq.sockets import ContextBase

__all__ = [
    "AllowList",
    "Request",
    "authorize",
    "curve_client_options",
    "curve_server_options",
    "plain_client_options",
    "plain_server_options",
]


class AllowList:
    """Accepts the listed peers and refuses all others. It can be changed while it is in use; any thread may do so.

    A change concerns new connections: connected peers stay connected.

    `keys` gives each public key (40 characters of Z85) its user id, which `Peer.user_id` shows. `passwords` gives each
    username its password. If `anonymous` is true, sockets with a ZAP domain but without CURVE or PLAIN accept every
    peer. Raises InvalidArgument for a malformed key.
    """

    def __init__(
        self,
        keys: Optional[Mapping[Key, str]] = None,
        passwords: Optional[Mapping[str, str]] = None,
        *,
        anonymous: bool = False,
    ) -> None:
        self._inner = _native.AllowList(anonymous)
        for key, user_id in (keys or {}).items():
            self.add_key(key, user_id)
        for username, password in (passwords or {}).items():
            self.add_password(username, password)

    def add_key(self, key: Key, user_id: str) -> None:
        """Adds a public key, or replaces its user id. Raises InvalidArgument for a malformed key."""
        try:
            self._inner.add_key(_text(key), user_id)
        except errors.Error as error:
            raise named(error, "add_key on AllowList") from None

    def remove_key(self, key: Key) -> bool:
        """Removes a public key. True if it was listed. Raises InvalidArgument for a malformed key."""
        try:
            return self._inner.remove_key(_text(key))
        except errors.Error as error:
            raise named(error, "remove_key on AllowList") from None

    def add_password(self, username: str, password: str) -> None:
        """Adds a username, or replaces its password."""
        self._inner.add_password(username, password)

    def remove_password(self, username: str) -> bool:
        """Removes a username. True if it was listed."""
        return self._inner.remove_password(username)


def authorize(context: ContextBase[Any], allowed: Union[AllowList, Decide]) -> None:
    """Lets a list or a function decide which peers may connect to the sockets of a context. Call it before `bind`.

    A function gets a `Request`. It returns the user id of an accepted peer as a str, or True for an accepted peer without
    one. `None` and False refuse the peer, as does an exception, which is reported. For a `Context`, the function runs in a
    thread of its own, for one peer after the other. For an `aio.Context`, call `authorize` in the event loop: the function
    runs there, and may be a coroutine function.

    The list or the function decides until the context ends. Raises AddressInUse if the context already has a list or
    another handler of ZAP, ContextTerminated.
    """
    if not isinstance(allowed, AllowList):
        if not callable(allowed):
            raise TypeError(f"authorize: an AllowList or a function decides, not {type(allowed).__name__}")
        _zap.start(context, allowed, f"authorize {context!r}")
        return
    try:
        allowed._inner.authorize(context)
    except errors.Error as error:
        raise named(error, f"authorize {context!r}") from None


def curve_server_options(secret: Key) -> Dict[int, OptionValue]:
    """Returns the options of a CURVE server, for `ReliablePub` and `Topics`."""
    return {Option.CURVE_SERVER: 1, Option.CURVE_SECRETKEY: secret}


def curve_client_options(server: Key, keys: Optional[KeyPair] = None) -> Dict[int, OptionValue]:
    """Returns the options of a CURVE client. `server` is the public key of the server.

    `keys` identify the client; without them, it gets new ones.
    """
    keys = keys or curve_keypair()
    return {
        Option.CURVE_SERVERKEY: server,
        Option.CURVE_PUBLICKEY: keys.public,
        Option.CURVE_SECRETKEY: keys.secret,
    }


def plain_server_options() -> Dict[int, OptionValue]:
    """Returns the options of a PLAIN server. Without `authorize`, it accepts every password."""
    return {Option.PLAIN_SERVER: 1}


def plain_client_options(username: str, password: str) -> Dict[int, OptionValue]:
    """Returns the options of a PLAIN client. The password is sent in clear."""
    return {Option.PLAIN_USERNAME: username, Option.PLAIN_PASSWORD: password}


def _text(key: Union[bytes, str]) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else key
