"""Certificates of an authority that a case creates, and messages for a TLS connection."""

import os

import trustme

KEY_PEM, CERT_PEM, TRUST_PEM, HOSTNAME, TRUST_SYSTEM = range(103, 108)


def authority():
    ca = trustme.CA()
    return ca, ca.cert_pem.bytes()


def certify(side_socket, ca, name):
    certificate = ca.issue_cert(name)
    side_socket.set(CERT_PEM, b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    side_socket.set(KEY_PEM, certificate.private_key_pem.bytes())


def trade(client, server):
    """Exchanges messages with sizes around the limits of frames and records in both directions, then many messages and a last one."""
    for size in (0, 1, 125, 126, 255, 256, 16_384, 70_000, 1 << 20):
        body = os.urandom(size)
        client.send(b"a", body)
        assert server.recv() == [b"a", body]
        server.send(body, b"b")
        assert client.recv() == [body, b"b"]
    for number in range(5_000):
        client.send(b"%d" % number)
    for number in range(5_000):
        assert server.recv() == [b"%d" % number]
    client.close()
    server.close()
