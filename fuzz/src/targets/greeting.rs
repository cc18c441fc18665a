//! A connection from its first byte: greetings of every version, and the bytes that follow
//! them.

use super::handshake::{raw, recorded};
use crate::input::Reader;
use tautline_proto::{MechanismConfig, SocketType};

/// Feeds any bytes from the first one on.
pub fn run(input: &[u8]) {
    raw(MechanismConfig::Null, MechanismConfig::Null, false, Reader::new(input));
}

/// A greeting of each version.
pub fn seeds() -> Vec<Vec<u8>> {
    let null = || [MechanismConfig::Null, MechanismConfig::Null];
    let v3 = recorded(0, null(), [SocketType::Push, SocketType::Pull], true);
    let head = |kind: SocketType, cut: u8| vec![kind.code(), cut, 0];
    let with = |mut head: Vec<u8>, stream: &[u8]| {
        head.extend_from_slice(stream);
        head
    };
    vec![
        with(head(SocketType::Pull, 1), &v3),
        with(head(SocketType::Pull, 0), &[&v3[..], b"\0\x05Hello"].concat()),
        // 2.0: signature, revision, socket type, identity.
        with(head(SocketType::Pull, 1), b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x08\0\0\0\x05Hello"),
        with(head(SocketType::XPub, 3), b"\xff\0\0\0\0\0\0\0\x05\x7f\x01\x02\0\x04name\0\x01\x01"),
        // 1.0: the identity as a frame, with a length of one octet and of eight.
        with(head(SocketType::Pull, 0), b"\x01\0\x06\0Hello"),
        with(head(SocketType::Router, 1), b"\x05\0name\x06\0Hello"),
        with(head(SocketType::Pub, 1), b"\xff\0\0\0\0\0\0\0\x05\0name"),
        with(head(SocketType::Pull, 0), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ]
}
