"""Keys for CURVE, and shortcuts that set the options of PLAIN and CURVE.

Without a policy or an authentication handler, a server accepts every client that knows its public key.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

from tautline_zmq import _native, errors
from tautline_zmq._options import Options

__all__ = ["KeyPair", "curve_client", "curve_keypair", "curve_public", "curve_server", "plain_client"]

Key = Union[bytes, str]


class KeyPair(NamedTuple):
    """A pair of keys for CURVE, 40 characters of Z85 each. Keep the secret key secret."""

    public: bytes
    secret: bytes


def curve_keypair() -> KeyPair:
    """Returns a new pair of keys."""
    return KeyPair(*_native.curve_keypair())


def curve_public(secret: Key) -> bytes:
    """Returns the public key of a secret key of 40 characters of Z85. Raises ValueError for other texts."""
    try:
        return _native.curve_public(secret)
    except ValueError:
        raise ValueError("a secret key has 40 characters of Z85") from None
    except Exception as error:
        number = errors.number_of(error)
        if number is None:
            raise
        raise errors.made(number, "curve_public") from None


def curve_server(socket: Options, secret: Key) -> None:
    """Makes a socket the server of CURVE. Call it before `bind`. Raises InvalidArgument for an invalid key."""
    socket.curve_secretkey = secret
    socket.curve_server = True


def curve_client(socket: Options, server: Key, keys: Optional[KeyPair] = None) -> None:
    """Makes a socket a client of CURVE. Call it before `connect`. Raises InvalidArgument for an invalid key.

    `server` is the public key of the server. `keys` identify the client; without them, it gets new ones.
    """
    keys = keys or curve_keypair()
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret
    socket.curve_serverkey = server


def plain_client(socket: Options, username: str, password: str) -> None:
    """Makes a socket a client of PLAIN. Call it before `connect`. The password is sent in clear."""
    socket.plain_username = username
    socket.plain_password = password
