//! Connections to a hostile server: its bytes to a connecting client, in each mechanism, over WebSocket, and
//! as a SOCKS proxy.

use super::handshake::{Edit, edits, session};
use super::{curve, plain};
use crate::input::{Reader, pieces};
use crate::live::*;
use crate::meter::{CONNECTION, Meter};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};
use tautline_proto::ws::{Config, Role, WebSocket};
use tautline_proto::{MechanismConfig, SocketType, Stage};

const KINDS: [u8; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19];
/// Path to the server.
const WAYS: [&str; 4] = ["ipc", "tcp", "ws", "socks"];
/// Limits of streams in one input, and of flooded bytes in all of them together.
const MOST_STREAMS: usize = 3;
const FLOOD: usize = 2 << 20;
/// Milliseconds within which a client reconnects, and polls without an event after which the server
/// continues.
const AGAIN: i32 = 20;
const PATIENCE: usize = 3;

static SOCKETS: Mutex<BTreeMap<(u8, usize, usize), Socket>> = Mutex::new(BTreeMap::new());

/// A listener of one input. A late client of another input must not be taken for a client of this input.
enum Server {
    Unix(UnixListener, String),
    Tcp(TcpListener),
}

impl Server {
    fn open(way: usize) -> Server {
        static NUMBER: Mutex<u64> = Mutex::new(0);
        if WAYS[way] == "ipc" {
            let mut number = NUMBER.lock().unwrap_or_else(PoisonError::into_inner);
            *number += 1;
            let name = format!("tautline-fuzz-{}-dialer-{number}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let listener = UnixListener::bind_addr(&address).unwrap();
            listener.set_nonblocking(true).unwrap();
            return Server::Unix(listener, name);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Server::Tcp(listener)
    }

    /// Returns the endpoint for a client on this path.
    fn endpoint(&self, way: usize, socket: &Socket) -> String {
        match self {
            Server::Unix(_, name) => format!("ipc://@{name}"),
            Server::Tcp(listener) => {
                let address = listener.local_addr().unwrap();
                match WAYS[way] {
                    "ws" => format!("ws://{address}/path"),
                    "socks" => {
                        // The peer behind the proxy does not exist: the client requests it from the proxy,
                        // which never connects.
                        socket.set(68, address.to_string().as_bytes());
                        "tcp://127.0.0.1:9".to_owned()
                    }
                    _ => format!("tcp://{address}"),
                }
            }
        }
    }

    /// Accepts a client that connects within the given number of milliseconds.
    fn accept(&self, milliseconds: i32) -> Option<Peer> {
        match self {
            Server::Unix(listener, _) => {
                wait(listener.as_fd(), libc::POLLIN, milliseconds);
                listener.accept().ok().map(|(stream, _)| Peer::from_unix(stream))
            }
            Server::Tcp(listener) => {
                wait(listener.as_fd(), libc::POLLIN, milliseconds);
                listener.accept().ok().map(|(stream, _)| Peer::from_tcp(stream))
            }
        }
    }
}

fn mechanism(number: usize) -> [MechanismConfig; 2] {
    match number {
        0 => [MechanismConfig::Null, MechanismConfig::Null],
        1 => plain::configs(),
        _ => curve::configs(),
    }
}

fn open(kind: u8, number: usize) -> Socket {
    let socket = Socket::new(kind);
    // ZMQ_RECONNECT_IVL, in milliseconds.
    socket.set_int(18, 1);
    match number {
        0 => {}
        1 => {
            socket.set(45, b"admin");
            socket.set(46, b"s3cret");
        }
        _ => {
            socket.set(50, &tautline_proto::public_key(&curve::SERVER_SECRET));
            socket.set(48, &tautline_proto::public_key(&curve::CLIENT_SECRET));
            socket.set(49, &curve::CLIENT_SECRET);
        }
    }
    socket
}

/// The input selects the type, the mechanism and the path. For each stream it selects the opening, the cuts,
/// the end and the bytes.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, number) = (reader.choice(&KINDS), usize::from(reader.byte()) % 3);
    let mut way = usize::from(reader.byte()) % WAYS.len();
    let number = if kind == 11 { 0 } else { number };
    if kind == 11 && WAYS[way] == "ws" {
        way = 1;
    }
    let mut sockets = SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    let socket = sockets.entry((kind, number, way)).or_insert_with(|| open(kind, number));
    let server = Server::open(way);
    let endpoint = server.endpoint(way, socket);
    let meter = Meter::begin();
    assert!(socket.connect(&endpoint), "{}", crate::abi::failed());
    socket.send(b"question", 0);
    let (mut taken, mut flood, mut peers) = (0, FLOOD, Vec::new());
    while peers.len() < MOST_STREAMS && (peers.is_empty() || !reader.is_empty()) {
        let patience = if peers.is_empty() { MAX_POLLS as i32 } else { AGAIN };
        let Some(mut peer) = server.accept(patience) else {
            assert!(!peers.is_empty(), "nobody connects");
            break;
        };
        let (flags, cut, len) = (reader.byte(), reader.byte(), usize::from(reader.word()) % 1024);
        let edits = edits(usize::from(flags >> 6), &mut reader);
        let said = reader.bytes(len);
        // A client also receives frames after a greeting.
        peer.count_parts(false);
        if flags & 1 == 0 {
            greet(&mut peer, kind, number, WAYS[way] == "ws", &edits);
        }
        for piece in pieces(said, cut) {
            peer.write_all(piece, 1);
            if flags & 2 != 0 {
                peer.read(4096);
            }
            socket.drain(usize::MAX);
        }
        if flags & 4 != 0 {
            let before = peer.accepted;
            peer.flood(said, flood);
            flood = flood.saturating_sub(peer.accepted - before);
        }
        taken += peer.accepted;
        socket.send(b"more", 0);
        if flags & 8 != 0 {
            peer.shutdown_write();
        }
        peers.push(peer);
        if flags & 16 != 0 {
            // The stream ends, and the client reconnects.
            peers.last_mut().unwrap().shutdown_both();
        }
    }
    let keeps = if [1, 9, 14].contains(&kind) { 128 * taken } else { 0 };
    let unfinished = peers.iter().map(Peer::unfinished).sum::<usize>();
    let each = CONNECTION + HWM as usize * MAX_MESSAGE as usize;
    meter.check((1 + peers.len()) * each + keeps + unfinished * 3 / 2, taken);
    socket.disconnect(&endpoint);
    for peer in peers.into_iter().filter(|peer| !peer.is_closed) {
        peer.finish(|| socket.drain(usize::MAX));
    }
    socket.drain(usize::MAX);
}

/// Returns the handshake of a correct server, with some edits.
fn greet(peer: &mut Peer, kind: u8, number: usize, websocket: bool, edits: &[Edit]) {
    let ours = SocketType::from_code(kind).unwrap();
    let theirs = (0..21).filter_map(SocketType::from_code).find(|theirs| ours.accepts(*theirs));
    let Some(theirs) = theirs else { return };
    let mut carrier = websocket.then(|| {
        WebSocket::new(Config {
            role: Role::Server,
            socket_type: theirs,
            mechanism: ["NULL", "PLAIN", "CURVE"][number],
            as_server: number > 0,
            max_msg_size: None,
            seed: [7; 32],
        })
    });
    let mut end = session(theirs, mechanism(number)[1].clone(), false);
    let (mut said, mut idle) = (0, 0);
    while idle < PATIENCE && !peer.is_closed {
        let mut bytes = end.output().to_vec();
        end.advance_output(bytes.len());
        if let Some(carrier) = &mut carrier {
            let mut wire = Vec::new();
            carrier.seal(&bytes, &mut wire);
            bytes = wire;
        }
        let start = said;
        said += bytes.len();
        edits.iter().for_each(|edit| edit.apply(start, &mut bytes));
        peer.write_all(&bytes, 1);
        let mut heard = peer.read(4096);
        let moved = !(bytes.is_empty() && heard.is_empty());
        if let Some(carrier) = &mut carrier {
            let mut opened = Vec::new();
            if carrier.open(&heard, &mut opened).is_err() {
                return;
            }
            heard = opened;
        }
        if end.input(&heard).is_err() || end.take_established().is_some() {
            let mut last = end.output().to_vec();
            if let Some(carrier) = &mut carrier {
                let frames = std::mem::take(&mut last);
                carrier.seal(&frames, &mut last);
            }
            peer.write_all(&last, 1);
            return;
        }
        if !moved {
            wait(peer.fd(), libc::POLLIN, 1);
            idle += 1;
        }
    }
}

/// Correct servers of each kind and path, proxies, floods, and streams that end in the middle.
pub fn seeds() -> Vec<Vec<u8>> {
    let stream = |flags: u8, cut: u8, said: &[u8]| {
        [&[flags, cut][..], &(said.len() as u16).to_be_bytes(), said].concat()
    };
    let mut seeds = Vec::new();
    let hello = b"\0\x05Hello\x01\0\x05world";
    for kind in 0..KINDS.len() as u8 {
        for way in 0..3 {
            seeds.push([&[kind, kind % 3, way][..], &stream(2, kind % 5, hello)].concat());
        }
        let proxy = b"\x05\0\x05\0\0\x01\x7f\0\0\x01\0\x09\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL";
        seeds.push([&[kind, 0, 3][..], &stream(3, kind % 3, proxy)].concat());
    }
    for mechanism in 0..3 {
        let ping = b"\x04\x09\x04PING\0\0ab";
        seeds.push([&[5, mechanism, 0][..], &stream(4, 0, ping)].concat());
        seeds.push(
            [&[5, mechanism, 1][..], &stream(16, 0, hello), &stream(17, 1, b"no"), &stream(0, 0, hello)]
                .concat(),
        );
        seeds.push([&[5, mechanism, 0, 0x40, 0, 0, 3, 0, 70, 1, 9][..], b"abc"].concat());
        seeds.push([&[5, mechanism, 0][..], &stream(0, 0, b"\x04\x08\x05ERROR\x02no")].concat());
    }
    seeds.push([&[5, 0, 2][..], &stream(4, 0, b"\x89\x04ping")].concat());
    seeds.push([&[5, 0, 3][..], &stream(3, 1, b"\x05\xff"), &stream(3, 1, b"\x05\0\x05\x05")].concat());
    seeds.push([&[7, 0, 2][..], &stream(1, 1, b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n")].concat());
    seeds
}
