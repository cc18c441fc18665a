//! A whole connection: raw bytes to a listening socket of any type, from the kernel to the messages that the
//! program receives.

use crate::input::{Reader, pieces};
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Types of the listening sockets. REQ and the like send their queued messages as soon as a peer is
/// connected.
const KINDS: [u8; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19];

/// Listening sockets, by type and transport. They are not closed at the end of the process, and stay
/// reachable.
static LISTENERS: Mutex<BTreeMap<(u8, bool), (Socket, Address)>> = Mutex::new(BTreeMap::new());

/// The input selects the type, the transport, the opening and the cuts, then the stream.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, flags, cut) = (reader.choice(&KINDS), reader.byte(), reader.byte());
    // STREAM has no WebSocket.
    let (websocket, begun) = (flags & 1 != 0 && kind != 11, flags & 2 != 0);
    // A REP that owes an answer does not read further, and does not notice the end.
    let sends = flags & 4 != 0 || kind == 4;
    let mut stream = Vec::new();
    if begun {
        stream = opening_bytes(kind, websocket);
    }
    stream.extend_from_slice(reader.rest());
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let (socket, address) = listeners.entry((kind, websocket)).or_insert_with(|| {
        let socket = Socket::new(kind);
        let address = socket.bind(if websocket { "ws" } else { "ipc" }, &format!("connection-{kind}"));
        (socket, address)
    });
    let meter = Meter::begin();
    let mut peer = Peer::connect(address);
    talk(socket, &mut peer, &stream, cut, sends);
    // A subscription costs far more than its bytes, and so do messages that are sent to several peers.
    meter.check(2 * CONNECTION + 128 * peer.accepted, peer.accepted);
}

/// Sends the stream, and receives as a program would, until the other end closes.
fn talk(socket: &Socket, peer: &mut Peer, stream: &[u8], cut: u8, sends: bool) {
    let mut pieces = pieces(stream, cut);
    let mut piece = pieces.next();
    let mut idle = 0;
    loop {
        let mut moved = false;
        match piece {
            Some(bytes) => {
                let said = peer.write(bytes);
                moved = said > 0;
                if moved {
                    piece = if said < bytes.len() { Some(&bytes[said..]) } else { pieces.next() };
                }
                if piece.is_none() {
                    peer.shutdown_write();
                }
            }
            None if stream.is_empty() && idle == 0 => peer.shutdown_write(),
            None => {}
        }
        socket.drain(usize::MAX);
        if sends {
            socket.send(b"answer", 0);
        }
        moved |= !peer.read(4096).is_empty();
        if peer.is_closed {
            return;
        }
        if !moved {
            wait(peer.fd(), libc::POLLIN, 1);
            idle += 1;
            assert!(idle < MAX_POLLS, "the connection does not end");
        }
    }
}

/// Messages to each type, over both transports.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for kind in 0..KINDS.len() as u8 {
        seeds.push([&[kind, 2, 0][..], b"\0\x05Hello\x01\0\0\x05world\x04\x07\x04PING\0\x05"].concat());
        seeds.push(
            [
                &[kind, 6, 1][..],
                b"\x04\x0b\x09SUBSCRIBEa\x04\x06\x04JOINa\x04\x08\x06CANCELa\x02\0\0\0\0\0\0\x01\0",
            ]
            .concat(),
        );
        seeds.push([&[kind, 7, 5][..], b"\x82\x86\0\0\0\0\0Hello\x88\x82\0\0\0\0\x03\xe8"].concat());
    }
    seeds.push([&[7, 0, 1][..], b"\x01\0\x06\0Hello"].concat());
    seeds.push([&[9, 0, 3][..], b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0\0\x02\x01a"].concat());
    seeds
}
