//! TLS to listening sockets, with ZMTP in WebSocket or directly: raw bytes, and a correct client
//! whose records are changed in transit.

use super::handshake::{Edit, edits};
use crate::input::{Reader, pieces};
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use crate::stream_parser::Parts;
use std::sync::{Mutex, PoisonError};
use tautline_proto::tls::{Tls, TlsConfig, Versions};
use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_proto::{Carrier, Direct, SocketType};

const PULL: u8 = 7;
const GREETING: usize = 64;
const KEY_PEM: i32 = 103;
const CERTIFICATE_PEM: i32 = 104;
/// Size of a flood in bytes. It is small, because TLS is slow.
const FLOOD: usize = 2 << 20;
/// Number of polls, a millisecond each, without an event, after which a client with changed records
/// continues.
const PATIENCE: usize = 5;

/// A certificate that only this target uses, and its key.
const CERTIFICATE: &[u8] = include_bytes!("wss/certificate.pem");
const KEY: &[u8] = include_bytes!("wss/key.pem");

/// Listeners of `wss` and `tls+tcp`.
static LISTENERS: [Mutex<Option<(Socket, Address)>>; 2] = [Mutex::new(None), Mutex::new(None)];

/// The input selects raw bytes or a client, the cuts, a flood, the content of TLS and edits, then
/// ZMTP after the greeting, or any bytes.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (flags, cut) = (reader.byte(), reader.byte());
    let is_direct = flags & 4 != 0;
    let mut listener = LISTENERS[usize::from(is_direct)].lock().unwrap_or_else(PoisonError::into_inner);
    let (socket, address) = listener.get_or_insert_with(|| {
        let socket = Socket::new(PULL);
        socket.set(KEY_PEM, KEY);
        socket.set(CERTIFICATE_PEM, CERTIFICATE);
        let address = socket.bind(if is_direct { "tls+tcp" } else { "wss" }, "");
        (socket, address)
    });
    let edits = edits(usize::from(flags >> 6), &mut reader);
    let rest = reader.rest();
    let meter = Meter::begin();
    let mut peer = Peer::connect(address);
    let mut unfinished = 0;
    if flags & 1 != 0 {
        for piece in pieces(rest, cut) {
            peer.write_all(piece, 1);
        }
        if flags & 2 != 0 {
            peer.flood(rest, FLOOD);
        }
    } else {
        let mut client =
            Client { tls: tls(is_direct), edits: &edits, cut, said: 0, parts: Parts::new(false) };
        client.talk(&mut peer, rest, flags & 2 != 0);
        unfinished = client.parts.unfinished(client.said);
    }
    // Both ends of TLS are counted. A growing unfinished message is copied.
    meter.check(3 * CONNECTION + HWM as usize * MAX_MESSAGE as usize + 2 * unfinished, peer.accepted);
    peer.finish(|| socket.drain(usize::MAX));
    socket.drain(usize::MAX);
}

/// Our own correct client. The edits change its records in transit.
struct Client<'a> {
    tls: Box<dyn Carrier>,
    edits: &'a [Edit],
    cut: u8,
    /// Bytes sent on the wire so far.
    said: usize,
    /// Its bytes before encryption.
    parts: Parts,
}

impl Client<'_> {
    /// Runs the handshakes, then sends `rest` as frames, repeatedly if it floods.
    fn talk(&mut self, peer: &mut Peer, rest: &[u8], floods: bool) {
        let begin = opening_bytes(PULL, false);
        let (greeting, ready) = begin.split_at(GREETING);
        self.say(peer, greeting);
        let is_let_in = self.is_greeted(peer);
        assert!(is_let_in || !self.edits.is_empty(), "a good client is not let in");
        if !is_let_in {
            return;
        }
        self.tls.complete_handshake();
        self.say(peer, ready);
        self.say(peer, rest);
        // In single bytes, a flood would need two million calls.
        self.cut = 0;
        let until = peer.accepted + FLOOD;
        let piece = rest.repeat(4096 / rest.len().max(1));
        while floods && peer.accepted < until && !peer.is_closed && self.say(peer, &piece) {}
    }

    /// Returns true if all bytes were accepted, and false if there are no bytes to send.
    fn say(&mut self, peer: &mut Peer, zmtp: &[u8]) -> bool {
        let mut wire = Vec::new();
        self.parts.hear(zmtp);
        self.tls.seal(zmtp, &mut wire);
        let start = self.said;
        self.said += wire.len();
        self.edits.iter().for_each(|edit| edit.apply(start, &mut wire));
        !wire.is_empty() && pieces(&wire, self.cut).all(|piece| peer.write_all(piece, 10))
    }

    /// Reads until TLS and the WebSocket are open.
    fn is_greeted(&mut self, peer: &mut Peer) -> bool {
        let most = if self.edits.is_empty() { MAX_POLLS } else { PATIENCE };
        let mut idle = 0;
        while idle < most && !peer.is_closed {
            let heard = peer.read(4096);
            let mut opened = Vec::new();
            if self.tls.open(&heard, &mut opened).is_err() {
                return false;
            }
            // The greeting, which a WebSocket supplies locally.
            if !opened.is_empty() {
                return true;
            }
            if !self.say(peer, &[]) && heard.is_empty() {
                idle += 1;
                wait(peer.fd(), libc::POLLIN, 1);
            }
        }
        false
    }
}

fn tls(is_direct: bool) -> Box<dyn Carrier> {
    let config = TlsConfig::client(CERTIFICATE, [], None, None, "localhost", Versions::Tls12And13).unwrap();
    if is_direct {
        return Box::new(Tls::new(&config, Direct).unwrap_or_else(|_| panic!("no TLS")));
    }
    let socket = WebSocket::new(Config {
        role: Role::Client { host: "localhost".into(), path: "/".into() },
        socket_type: SocketType::Push,
        mechanism: "NULL",
        as_server: false,
        max_msg_size: None,
        seed: [7; 32],
    });
    Box::new(Tls::new(&config, socket).unwrap_or_else(|_| panic!("no TLS")))
}

/// Correct clients, some with floods, some with changed records, and bytes that are not TLS.
pub fn seeds() -> Vec<Vec<u8>> {
    let frames = b"\0\x05Hello\x01\x01a\0\x01b\x04\x07\x04PING\0\x01";
    vec![
        [&[0, 0][..], frames].concat(),
        [&[0, 9][..], frames].concat(),
        [&[2, 0][..], frames].concat(),
        [&[2, 0][..], b"\x01\x01a"].concat(),
        [&[2, 0][..], b"\x04\x07\x04PING\0\x01"].concat(),
        [&[0x40, 0, 0, 0, 20, 0, 9][..], frames].concat(),
        [&[0x80, 3, 0, 1, 20, 1, 9, 0, 0, 90, 3, 0][..], frames].concat(),
        [&[4, 0][..], frames].concat(),
        [&[4, 9][..], frames].concat(),
        [&[6, 0][..], frames].concat(),
        [&[0x44, 0, 0, 0, 20, 0, 9][..], frames].concat(),
        [&[5, 5][..], b"\x16\x03\x01\0\x05\x01\0\0\x01\x03\x17\x03\x03\0\x02ab"].concat(),
        [&[1, 0][..], b"GET / HTTP/1.1\r\n\r\n"].concat(),
        [&[3, 0][..], b"\x16\x03\x01\x40\0\x01\0\x3f\xfc\x03\x03"].concat(),
        [&[1, 5][..], b"\x16\x03\x01\0\x05\x01\0\0\x01\x03\x17\x03\x03\0\x02ab"].concat(),
    ]
}
