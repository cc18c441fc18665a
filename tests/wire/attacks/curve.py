"""The client side of CURVE (RFC 25 and 26), for strangers that know the server's public key. It uses libsodium's cipher."""

import ctypes
import ctypes.util
import struct

import zmtp

# Public key of the server in victim.c.
SERVER_KEY = "Ynw{U7yd(=/2mas!aO>ZmsVQ%[m=XtPDWSM9H-r)"
OVERHEAD = 16
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def load():
    try:
        sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
    except OSError:
        return None
    sodium.crypto_box_easy.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulonglong] + [ctypes.c_char_p] * 3
    sodium.crypto_box_open_easy.argtypes = sodium.crypto_box_easy.argtypes
    return sodium


SODIUM = load()


def there():
    return SODIUM is not None


def decode(text):
    """Decodes a key from its 40 characters of Z85."""
    data = b""
    for at in range(0, len(text), 5):
        value = 0
        for character in text[at : at + 5]:
            value = value * 85 + Z85.index(character)
        data += struct.pack(">I", value)
    return data


def pair():
    """Returns a new key pair as (public, secret)."""
    public, secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
    SODIUM.crypto_box_keypair(public, secret)
    return public.raw, secret.raw


def seal(data, nonce, public, secret):
    out = ctypes.create_string_buffer(len(data) + OVERHEAD)
    SODIUM.crypto_box_easy(out, data, len(data), nonce, public, secret)
    return out.raw


def unseal(box, nonce, public, secret):
    out = ctypes.create_string_buffer(max(1, len(box) - OVERHEAD))
    if SODIUM.crypto_box_open_easy(out, box, len(box), nonce, public, secret) != 0:
        raise ConnectionError("a box that does not open")
    return out.raw


class Client:
    """A client that knows the server's key. The server does not know the client's key pair."""

    def __init__(self):
        self.server = decode(SERVER_KEY)
        self.long, self.short = pair(), pair()
        self.number = 0

    def nonce(self, prefix):
        self.number += 1
        short = struct.pack(">Q", self.number)
        return short, prefix + short

    def hello(self):
        short, nonce = self.nonce(b"CurveZMQHELLO---")
        box = seal(bytes(64), nonce, self.server, self.short[1])
        return zmtp.command("HELLO", b"\1\0" + bytes(72) + self.short[0] + short + box)

    def initiate(self, welcome, socket_type):
        """Returns the INITIATE that answers a WELCOME frame with the body `welcome`."""
        body = welcome[len(b"\7WELCOME") :]
        opened = unseal(body[16:], b"WELCOME-" + body[:16], self.server, self.short[1])
        self.theirs, cookie = opened[:32], opened[32:]
        vouch = bytes(16)
        box = seal(self.short[0] + self.server, b"VOUCH---" + vouch, self.theirs, self.long[1])
        short, nonce = self.nonce(b"CurveZMQINITIATE")
        data = self.long[0] + vouch + box + zmtp.metadata(("Socket-Type", socket_type.encode()))
        return zmtp.command("INITIATE", cookie + short + seal(data, nonce, self.theirs, self.short[1]))

    def message(self, body):
        short, nonce = self.nonce(b"CurveZMQMESSAGEC")
        return zmtp.command("MESSAGE", short + seal(b"\0" + body, nonce, self.theirs, self.short[1]))

    def shake_hands(self, stream, socket_type):
        """Sends the handshake up to INITIATE. The server then asks its ZAP handler about the stranger."""
        stream.sendall(zmtp.greeting(b"CURVE") + self.hello())
        zmtp.read_exactly(stream, 64)
        stream.sendall(self.initiate(zmtp.read_frame(stream)[1], socket_type))
