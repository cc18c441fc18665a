//! A whole connection: raw bytes to a listening socket of any type, from the kernel to what the program receives.

use crate::abi::*;
use crate::pieces::{Reader, pieces};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::{Mutex, PoisonError};

/// Types that are listened with; REQ and the like send what they have as soon as somebody is there.
const KINDS: [u8; 18] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19];

/// A socket that listens, and where.
struct Listener {
    socket: *mut c_void,
    address: Address,
}

enum Address {
    /// An abstract name.
    Unix(Vec<u8>),
    /// A port of this machine, for WebSocket.
    Tcp(u16),
}

/// Not closed at the end of the process, and not lost either.
static LISTENERS: Mutex<BTreeMap<(u8, bool), Listener>> = Mutex::new(BTreeMap::new());

// SAFETY: used under the lock.
unsafe impl Send for Listener {}

/// The type, the transport, how it is begun and cut; then the stream.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, flags, cut) = (reader.choice(&KINDS), reader.byte(), reader.byte());
    // STREAM has no WebSocket.
    let (websocket, begun) = (flags & 1 != 0 && kind != 11, flags & 2 != 0);
    // A REP that owes an answer reads no further, and does not see the end.
    let sends = flags & 4 != 0 || kind == 4;
    let mut stream = Vec::new();
    if begun {
        stream = beginning(kind, websocket);
    }
    stream.extend_from_slice(reader.rest());
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = listeners.entry((kind, websocket)).or_insert_with(|| listen(kind, websocket));
    match &listener.address {
        Address::Unix(name) => {
            let address = SocketAddr::from_abstract_name(name).unwrap();
            let peer = UnixStream::connect_addr(&address).unwrap();
            peer.set_nonblocking(true).unwrap();
            let shutdown = || peer.shutdown(Shutdown::Write);
            talk(listener.socket, peer.as_raw_fd(), &peer, &peer, shutdown, &stream, cut, sends);
        }
        Address::Tcp(port) => {
            let peer = TcpStream::connect(("127.0.0.1", *port)).unwrap();
            peer.set_nonblocking(true).unwrap();
            let shutdown = || peer.shutdown(Shutdown::Write);
            talk(listener.socket, peer.as_raw_fd(), &peer, &peer, shutdown, &stream, cut, sends);
        }
    }
}

/// Sends the stream, receives as a program would, until the other end has closed.
#[allow(clippy::too_many_arguments)]
fn talk(
    socket: *mut c_void,
    fd: RawFd,
    mut to: impl Write,
    mut from: impl Read,
    shutdown: impl Fn() -> std::io::Result<()>,
    stream: &[u8],
    cut: u8,
    sends: bool,
) {
    let mut pieces = pieces(stream, cut);
    let mut piece = pieces.next();
    let (mut heard, mut idle) = ([0; 4096], 0);
    loop {
        let mut moved = false;
        match piece {
            Some(bytes) => match to.write(bytes) {
                Ok(n) => {
                    piece = if n < bytes.len() { Some(&bytes[n..]) } else { pieces.next() };
                    moved = true;
                    if piece.is_none() {
                        let _ = shutdown();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => piece = None,
            },
            None if stream.is_empty() && idle == 0 => drop(shutdown()),
            None => {}
        }
        // SAFETY: a socket of this thread.
        unsafe { drain(socket, sends) };
        match from.read(&mut heard) {
            Ok(0) => return,
            Ok(_) => moved = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
        if !moved {
            wait(fd);
            idle += 1;
            // A minute: not slow, but never.
            assert!(idle < 60_000, "the connection does not end");
        }
    }
}

/// Takes all that is there. A type that has to answer does.
unsafe fn drain(socket: *mut c_void, sends: bool) {
    // SAFETY: the caller's socket; buffers of the lengths that are told.
    unsafe {
        let mut bytes = [0_u8; 256];
        while zmq_recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), DONTWAIT) >= 0 {}
        if sends {
            zmq_send(socket, b"answer".as_ptr().cast(), 6, DONTWAIT);
        }
    }
}

fn wait(fd: RawFd) {
    let mut item = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one item.
    unsafe { libc::poll(&mut item, 1, 1) };
}

fn listen(kind: u8, websocket: bool) -> Listener {
    let name = format!("tautline-fuzz-{}-{kind}", std::process::id());
    let endpoint = if websocket { "ws://127.0.0.1:*".to_owned() } else { format!("ipc://@{name}") };
    // SAFETY: a context, a socket of this thread, values of the lengths that are told.
    unsafe {
        let socket = zmq_socket(context(), c_int::from(kind));
        let (limit, few) = (1_i64 << 20, 10_i32);
        // MAXMSGSIZE and the high-water marks.
        zmq_setsockopt(socket, 22, (&raw const limit).cast(), 8);
        for option in [23, 24] {
            zmq_setsockopt(socket, option, (&raw const few).cast(), 4);
        }
        if kind == 2 {
            zmq_setsockopt(socket, 6, b"".as_ptr().cast(), 0);
        }
        let endpoint = text(endpoint.as_bytes());
        assert_eq!(zmq_bind(socket, endpoint.as_ptr()), 0, "{}", failed());
        let address = if websocket {
            let bound = get(socket, LAST_ENDPOINT, 256).unwrap();
            let bound = CStr::from_bytes_until_nul(&bound).unwrap().to_str().unwrap();
            let port = bound.trim_end_matches('/').rsplit(':').next().unwrap();
            Address::Tcp(port.parse().unwrap_or_else(|_| panic!("{bound}")))
        } else {
            Address::Unix(name.into_bytes())
        };
        Listener { socket, address }
    }
}

/// What a good peer of this type begins with.
fn beginning(kind: u8, websocket: bool) -> Vec<u8> {
    let names = [
        "PAIR", "SUB", "PUB", "REP", "REQ", "DEALER", "DEALER", "PUSH", "PULL", "SUB", "PUB", "", "CLIENT",
        "SERVER", "DISH", "RADIO", "SCATTER", "", "", "PEER",
    ];
    let mut ready = b"\x04\0\x05READY".to_vec();
    tautline_proto::metadata::put_property(&mut ready, "Socket-Type", names[usize::from(kind)].as_bytes());
    ready[1] = ready.len() as u8 - 2;
    if websocket {
        let mut stream = b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n\r\n"
            .to_vec();
        // The mask is all zeros.
        stream.extend([0x82, 0x80 | (ready.len() as u8 - 1), 0, 0, 0, 0, 2]);
        stream.extend_from_slice(&ready[2..]);
        return stream;
    }
    let mut stream = vec![0; 64];
    stream[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL");
    stream.extend_from_slice(&ready);
    stream
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
