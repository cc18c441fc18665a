"""TLS for an attacker. It calls OpenSSL's library for messages that Python's module cannot send."""

import ctypes
import ctypes.util
import socket
import ssl
import struct

# A self-signed certificate and its key, generated for this test.
KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtbXX3GlzyXqBUZH9
wpsPNG4OUOzA5LnTjgurLWjBtq+hRANCAAT1T7/WZlwnFlc8ql+NYD0wpQ2XkNdL
vAigFQ9PfGWXq8aKnlv0diQ16jvuHDRRqn0dn8WUwE0XC5OqOrZmst4r
-----END PRIVATE KEY-----
"""
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUSQOn0Jy6Khhy+m1M/ys6feD3K5cwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGdmljdGltMCAXDTI2MTEyNjIzMzUxMloYDzIxMjYxMTAyMjMz
NTEyWjARMQ8wDQYDVQQDDAZ2aWN0aW0wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAT1T7/WZlwnFlc8ql+NYD0wpQ2XkNdLvAigFQ9PfGWXq8aKnlv0diQ16jvuHDRR
qn0dn8WUwE0XC5OqOrZmst4ro1MwUTAdBgNVHQ4EFgQU0W2CfROwarxHx3jw8sv/
HPntXC4wHwYDVR0jBBgwFoAU0W2CfROwarxHx3jw8sv/HPntXC4wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAiEu7X5UbrTrv5QECRNxCp122Cttq
RR5fzTTkI5Pl6w4CIQCc649iFizOtq8iUFNKqQg0SA7zD6jS0n39BnKUn1jafg==
-----END CERTIFICATE-----
"""
TLS1_2, TLS1_3 = 0x0303, 0x0304
SET_MIN, SET_MAX = 123, 124
UPDATE_NOT_REQUESTED, UPDATE_REQUESTED = 0, 1


def load():
    name = ctypes.util.find_library("ssl")
    try:
        library = ctypes.CDLL(name) if name else None
        if not hasattr(library, "SSL_key_update"):
            return None
    except OSError:
        return None
    for function in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(library, function).restype = ctypes.c_void_p
    for function in ("SSL_CTX_new", "SSL_CTX_free", "SSL_new", "SSL_free"):
        getattr(library, function).argtypes = [ctypes.c_void_p]
    library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    library.SSL_set_fd.argtypes = library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.SSL_write.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    for function in ("SSL_connect", "SSL_do_handshake", "SSL_renegotiate"):
        getattr(library, function).argtypes = [ctypes.c_void_p]
    return library


OPENSSL = load()


def there():
    return OPENSSL is not None


class Stream:
    """The client's end of TLS over a blocking stream. It does not check the server's certificate.

    `patience_s` is the timeout of reads and writes after the handshake.
    """

    def __init__(self, stream, version=TLS1_3, patience_s=None):
        self.stream = stream
        # A timeout in Python would make the descriptor non-blocking.
        stream.settimeout(None)
        context = OPENSSL.SSL_CTX_new(OPENSSL.TLS_client_method())
        OPENSSL.SSL_CTX_ctrl(context, SET_MIN, version, None)
        OPENSSL.SSL_CTX_ctrl(context, SET_MAX, version, None)
        self.ssl = OPENSSL.SSL_new(context)
        # The SSL object holds a reference to the context.
        OPENSSL.SSL_CTX_free(context)
        OPENSSL.SSL_set_fd(self.ssl, stream.fileno())
        if OPENSSL.SSL_connect(self.ssl) != 1:
            raise ConnectionError("no TLS")
        if patience_s is not None:
            value = struct.pack("ll", int(patience_s), int(patience_s % 1 * 1e6))
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)

    def __del__(self):
        OPENSSL.SSL_free(self.ssl)

    def update_key(self, answer):
        """Sends a KeyUpdate, which may request one in return. Returns False if the stream takes no more data."""
        return OPENSSL.SSL_key_update(self.ssl, UPDATE_REQUESTED if answer else UPDATE_NOT_REQUESTED) == 1 and OPENSSL.SSL_do_handshake(self.ssl) == 1

    def negotiate_again(self):
        """Requests a new handshake within TLS 1.2. Returns False if it was refused."""
        return OPENSSL.SSL_renegotiate(self.ssl) == 1 and OPENSSL.SSL_do_handshake(self.ssl) == 1

    def write(self, data):
        """Sends data as one record. Returns False if the stream takes no more data."""
        return OPENSSL.SSL_write(self.ssl, data, len(data)) == len(data)


def client_hello():
    """Returns the first record of a client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), said).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return said.read()
