//! WebSocket: the opening handshake of either end, and the frames after it.

use super::handshake::frames_of;
use crate::input::{Reader, pieces};
use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_proto::{Carrier, ProtocolError, SocketType, Stage};

const MAX_MESSAGE: u64 = 1 << 20;

/// The input selects the end, whether the opening is done, the mechanism and the cuts, then the
/// bytes of the peer.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (flags, cut) = (reader.byte(), reader.byte());
    let rest = reader.rest();
    let mut stream = Vec::new();
    if flags & 2 != 0 {
        stream = opening(flags);
    }
    stream.extend_from_slice(rest);
    let whole = play(flags, &stream, 0);
    assert_eq!(whole, play(flags, &stream, cut), "a cut changes nothing");
    both(flags, cut, rest);
}

/// Feeds a stream to one end, and returns the outcome.
fn play(flags: u8, stream: &[u8], cut: u8) -> (Result<(), ProtocolError>, Vec<u8>, bool) {
    let mut socket = socket(flags);
    let (mut zmtp, mut out) = (Vec::new(), Vec::new());
    let mut result = Ok(());
    for piece in pieces(stream, cut) {
        result = socket.open(piece, &mut zmtp);
        assert!(socket.buffered() <= stream.len() + 256);
        socket.seal(&[], &mut out);
        assert!(!socket.has_output(), "all that it has to say is said");
        if result.is_err() {
            break;
        }
    }
    socket.close(&mut out);
    assert!(out.len() <= 2048 + 16 * stream.len() && zmtp.len() <= 256 + 10 * stream.len());
    (result, zmtp, socket.is_closed())
}

/// Runs two ends with each other: each end receives the bytes of the other end, whatever the cuts.
fn both(flags: u8, cut: u8, bytes: &[u8]) {
    let mut ends = [socket(flags & !1), socket(flags | 1)];
    let frames = frames_of(bytes);
    // The greeting, which is not transmitted, and then frames.
    let signature = b"\xff\0\0\0\0\0\0\0\x01\x7f";
    let greeting = [&signature[..], &[3], &[0; 53]].concat();
    let mut got = [Vec::new(), Vec::new()];
    for turn in 0..4 {
        let mut wires = [Vec::new(), Vec::new()];
        for (end, wire) in ends.iter_mut().zip(&mut wires) {
            let says: &[u8] = match turn {
                0 => signature,
                2 => &greeting[signature.len()..],
                3 => &frames,
                _ => &[],
            };
            if turn == 3 {
                end.complete_handshake();
                let _ = end.ping();
            }
            pieces(says, cut).for_each(|piece| end.seal(piece, wire));
            end.seal(&[], wire);
        }
        for (to, wire) in [(0, &wires[1]), (1, &wires[0])] {
            let opened = pieces(wire, cut).try_for_each(|piece| ends[to].open(piece, &mut got[to]));
            assert_eq!(opened, Ok(()));
        }
    }
    for got in got {
        assert_eq!(got[64..], frames, "behind the greeting that was made up");
    }
}

/// Returns the opening handshake of this end's peer.
fn opening(flags: u8) -> Vec<u8> {
    let (mut us, mut peer) = (socket(flags), socket(flags ^ 1));
    let mut wire = Vec::new();
    us.seal(&[], &mut wire);
    if !wire.is_empty() {
        peer.open(&wire, &mut Vec::new()).unwrap();
        wire.clear();
    }
    peer.seal(&[], &mut wire);
    wire
}

fn socket(flags: u8) -> WebSocket {
    let (mechanism, server) = (["NULL", "PLAIN", "CURVE"][usize::from(flags >> 2) % 3], flags & 1 != 0);
    let role = match server {
        true => Role::Server,
        false => Role::Client { host: "localhost:81".into(), path: "/a".into() },
    };
    WebSocket::new(Config {
        role,
        socket_type: SocketType::Dealer,
        mechanism,
        as_server: server && mechanism != "NULL",
        max_msg_size: Some(MAX_MESSAGE),
        seed: [7; 32],
    })
}

/// Opening handshakes of both ends, and frames: masked, in fragments, control frames.
pub fn seeds() -> Vec<Vec<u8>> {
    let bare = "GET / HTTP/1.1\r\nHost: h\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: x, ZWS2.0\r\n\r\n";
    let with = |flags: u8, cut: u8, bytes: &[u8]| [&[flags, cut][..], bytes].concat();
    vec![
        with(1, 1, bare.as_bytes()),
        with(1, 9, &opening(1)),
        with(0, 1, &opening(0)),
        with(4, 5, &opening(4)),
        with(0, 0, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
        with(2, 1, b"\x82\x06\x00Hello\x82\x02\x01a\x82\x06\x02\x04PING"),
        with(3, 1, b"\x82\x86\x01\x02\x03\x04\x01Jfhmn\x89\x80\0\0\0\0\x88\x82\0\0\0\0\x03\xe8"),
        with(2, 3, b"\x02\x03\x00He\x89\x01x\x00\x01l\x80\x02lo\x8a\x00\x88\x02\x03\xe8"),
        with(2, 2, b"\x82\x7e\x01\x00\x00"),
        with(2, 2, b"\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00\x00"),
    ]
}
