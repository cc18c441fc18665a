//! Sockets of the library that live as long as the process, and raw peers that talk to them.

use crate::abi::*;
use crate::stream_parser::Parts;
use std::ffi::{CStr, c_int, c_void};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::OnceLock;

/// `ZMQ_MAXMSGSIZE` and the high-water marks of the listeners.
pub const MAX_MESSAGE: i64 = 1 << 14;
pub const HWM: i32 = 10;
/// Size of the system's buffer for one end of a connection, in bytes. A small buffer is soon full, so the
/// library must store unread data or leave it unread.
const BUFFER: i32 = 1 << 14;
/// Number of polls, a millisecond each, after which an expected event counts as lost: one minute.
pub const MAX_POLLS: usize = 60_000;

const MAXMSGSIZE: c_int = 22;
const SNDBUF: c_int = 11;
const RCVBUF: c_int = 12;
const SNDHWM: c_int = 23;
const RCVHWM: c_int = 24;

/// Address of a listening socket.
#[derive(Clone)]
pub enum Address {
    /// An abstract name.
    Unix(Vec<u8>),
    /// A port of this host.
    Tcp(u16),
}

/// A socket that listens or will connect.
pub struct Socket(pub *mut c_void);

// SAFETY: the targets use a socket under a lock.
unsafe impl Send for Socket {}

impl Socket {
    /// Creates a socket with small high-water marks, a limit for messages, and no linger.
    pub fn new(kind: u8) -> Socket {
        Socket::in_context(context(), kind)
    }

    /// Creates such a socket in another context, which also lives as long as the process.
    pub fn in_other_context(kind: u8) -> Socket {
        static CONTEXT: OnceLock<usize> = OnceLock::new();
        // SAFETY: takes no arguments.
        Socket::in_context(*CONTEXT.get_or_init(|| unsafe { zmq_ctx_new() } as usize) as *mut c_void, kind)
    }

    fn in_context(context: *mut c_void, kind: u8) -> Socket {
        tautline_core::fuzzing::keep_no_blocks();
        // SAFETY: a context; the result is checked.
        let socket = Socket(unsafe { zmq_socket(context, c_int::from(kind)) });
        assert!(!socket.0.is_null(), "{}", failed());
        socket.set(MAXMSGSIZE, &MAX_MESSAGE.to_ne_bytes());
        for (option, value) in [(SNDHWM, HWM), (RCVHWM, HWM), (SNDBUF, BUFFER), (RCVBUF, BUFFER)] {
            socket.set_int(option, value);
        }
        socket.set_int(LINGER, 0);
        if kind == 2 {
            socket.set(6, b"");
        }
        socket
    }

    /// Creates a socket for datagrams, with the default buffers of the system and the default high-water
    /// marks of the library.
    pub fn datagrams(kind: u8) -> Socket {
        tautline_core::fuzzing::keep_no_blocks();
        // SAFETY: a context; the result is checked.
        let socket = Socket(unsafe { zmq_socket(context(), c_int::from(kind)) });
        assert!(!socket.0.is_null(), "{}", failed());
        socket.set_int(LINGER, 0);
        socket
    }

    /// Returns ZMQ_FD, which becomes readable at each event.
    pub fn event_fd(&self) -> BorrowedFd<'static> {
        // SAFETY: a socket of this thread. The socket and its descriptor stay open forever.
        unsafe {
            let fd = get(self.0, 14, 4).unwrap();
            BorrowedFd::borrow_raw(c_int::from_ne_bytes(fd[..4].try_into().unwrap()))
        }
    }

    /// Sets an option. The call must succeed.
    pub fn set(&self, option: c_int, value: &[u8]) {
        // SAFETY: a socket, and a value of the given length.
        let set = unsafe { zmq_setsockopt(self.0, option, value.as_ptr().cast(), value.len()) };
        assert_eq!(set, 0, "option {option}: {}", failed());
    }

    /// Sets an option to a number.
    pub fn set_int(&self, option: c_int, value: i32) {
        self.set(option, &value.to_ne_bytes());
    }

    /// Binds to a new address of this scheme: `ipc` to an abstract name, other schemes to a port.
    pub fn bind(&self, scheme: &str, name: &str) -> Address {
        let name = format!("tautline-fuzz-{}-{name}", std::process::id());
        let endpoint =
            if scheme == "ipc" { format!("ipc://@{name}") } else { format!("{scheme}://127.0.0.1:*") };
        assert!(self.bind_to(&endpoint), "{endpoint}: {}", failed());
        if scheme == "ipc" { Address::Unix(name.into_bytes()) } else { Address::Tcp(self.port()) }
    }

    /// Binds to an endpoint. Returns true on success.
    pub fn bind_to(&self, endpoint: &str) -> bool {
        // SAFETY: a socket and a C string.
        unsafe { zmq_bind(self.0, text(endpoint.as_bytes()).as_ptr()) == 0 }
    }

    /// Returns the port of its last endpoint.
    fn port(&self) -> u16 {
        // SAFETY: a socket of this thread.
        let bound = unsafe { get(self.0, LAST_ENDPOINT, 256) }.unwrap();
        let bound = CStr::from_bytes_until_nul(&bound).unwrap().to_str().unwrap();
        let port = bound.trim_end_matches('/').rsplit(':').next().unwrap();
        port.parse().unwrap_or_else(|_| panic!("{bound}"))
    }

    /// Receives one part into a buffer of `room` bytes. Returns the bytes, and true if more parts follow.
    pub fn receive(&self, room: usize) -> Option<(Vec<u8>, bool)> {
        let mut bytes = vec![0; room];
        // SAFETY: a socket, and a buffer of the given length.
        let len = unsafe { zmq_recv(self.0, bytes.as_mut_ptr().cast(), room, DONTWAIT) };
        bytes.truncate(usize::try_from(len).ok()?);
        let (mut more, mut size) = (0_i32, size_of::<c_int>());
        // SAFETY: a socket, and space for a number.
        unsafe { zmq_getsockopt(self.0, 13, (&raw mut more).cast(), &mut size) };
        Some((bytes, more != 0))
    }

    /// Receives all available parts, up to a limit.
    pub fn drain(&self, parts: usize) {
        let mut bytes = [0_u8; 256];
        for _ in 0..parts {
            // SAFETY: a socket, and a buffer of the given length.
            if unsafe { zmq_recv(self.0, bytes.as_mut_ptr().cast(), bytes.len(), DONTWAIT) } < 0 {
                return;
            }
        }
    }

    /// Sends a part if the socket accepts it at once.
    pub fn send(&self, body: &[u8], flags: c_int) -> bool {
        // SAFETY: a socket, and bytes of the given length.
        unsafe { zmq_send(self.0, body.as_ptr().cast(), body.len(), DONTWAIT | flags) >= 0 }
    }

    /// Connects. Returns true if the endpoint was accepted.
    pub fn connect(&self, endpoint: &str) -> bool {
        // SAFETY: a socket and a C string.
        unsafe { zmq_connect(self.0, text(endpoint.as_bytes()).as_ptr()) == 0 }
    }

    /// Disconnects from an endpoint.
    pub fn disconnect(&self, endpoint: &str) -> bool {
        // SAFETY: a socket and a C string.
        unsafe { zmq_disconnect(self.0, text(endpoint.as_bytes()).as_ptr()) == 0 }
    }
}

/// A non-blocking stream.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The raw remote end of a connection.
pub struct Peer {
    stream: Stream,
    /// Number of bytes that the library, or the system on its behalf, has accepted.
    pub accepted: usize,
    /// True if either side has ended the stream.
    pub is_closed: bool,
    parts: Option<Parts>,
}

impl Peer {
    /// Connects to a listener.
    pub fn connect(address: &Address) -> Peer {
        match address {
            Address::Unix(name) => {
                let address = SocketAddr::from_abstract_name(name).unwrap();
                Peer::from_unix(UnixStream::connect_addr(&address).unwrap())
            }
            Address::Tcp(port) => Peer::from_tcp(TcpStream::connect(("127.0.0.1", *port)).unwrap()),
        }
    }

    /// Wraps an end of a Unix domain stream.
    pub fn from_unix(stream: UnixStream) -> Peer {
        stream.set_nonblocking(true).unwrap();
        Peer { stream: Stream::Unix(stream), accepted: 0, is_closed: false, parts: None }
    }

    /// Wraps an end of a TCP stream.
    pub fn from_tcp(stream: TcpStream) -> Peer {
        let (buffer, len) = (BUFFER, size_of::<c_int>() as libc::socklen_t);
        for option in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            let value = (&raw const buffer).cast();
            // SAFETY: a descriptor, and a number of the given length.
            unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, option, value, len) };
        }
        stream.set_nonblocking(true).unwrap();
        Peer { stream: Stream::Tcp(stream), accepted: 0, is_closed: false, parts: None }
    }

    /// Counts the bytes of unfinished messages, from the beginning of the stream.
    pub fn count_parts(&mut self, websocket: bool) {
        self.parts = Some(Parts::new(websocket));
    }

    /// Returns the number of sent bytes that belong to an unfinished message.
    pub fn unfinished(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.unfinished(self.accepted))
    }

    /// Sends as much as the other side accepts at once. Returns the number of bytes.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.is_closed || bytes.is_empty() {
            return 0;
        }
        let sent = match &mut self.stream {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        };
        match sent {
            Ok(n) => {
                self.accepted += n;
                if let Some(parts) = &mut self.parts {
                    parts.hear(&bytes[..n]);
                }
                n
            }
            Err(error) => {
                self.is_closed |= !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                0
            }
        }
    }

    /// Sends all bytes, as long as the other side accepts some within `patience` milliseconds. Returns true
    /// if all were sent.
    pub fn write_all(&mut self, mut bytes: &[u8], patience: c_int) -> bool {
        while !bytes.is_empty() && !self.is_closed {
            match self.write(bytes) {
                0 if !wait(self.fd(), libc::POLLOUT, patience) => return false,
                n => bytes = &bytes[n..],
            }
        }
        bytes.is_empty()
    }

    /// Sends `bytes` repeatedly until `most` bytes are sent, or until the other side stops accepting. Does not
    /// read in between.
    pub fn flood(&mut self, bytes: &[u8], most: usize) {
        if bytes.is_empty() {
            return;
        }
        let piece = bytes.repeat((16 * 1024 / bytes.len()).max(1));
        let until = self.accepted + most;
        while self.accepted < until && self.write_all(&piece, 10) {}
    }

    /// Reads at most `most` bytes from the other side. Returns an empty value if no bytes are available.
    pub fn read(&mut self, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let heard = match &mut self.stream {
            Stream::Unix(stream) => stream.read(&mut bytes),
            Stream::Tcp(stream) => stream.read(&mut bytes),
        };
        let len = match heard {
            Ok(0) => {
                self.is_closed = true;
                0
            }
            Ok(n) => n,
            Err(error) => {
                self.is_closed |= !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
                0
            }
        };
        bytes.truncate(len);
        bytes
    }

    /// Shuts down the sending direction.
    pub fn shutdown_write(&mut self) {
        let _ = match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Shuts down both directions.
    pub fn shutdown_both(&mut self) {
        self.is_closed = true;
        let _ = match &self.stream {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Returns its descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }

    /// Shuts down the sending direction and reads until the other side closes. `meanwhile` runs the program's
    /// part.
    pub fn finish(mut self, mut meanwhile: impl FnMut()) {
        self.shutdown_write();
        for look in 0.. {
            assert!(look < MAX_POLLS, "the connection does not end");
            while !self.is_closed && !self.read(4096).is_empty() {}
            if self.is_closed {
                return;
            }
            meanwhile();
            wait(self.fd(), libc::POLLIN, 1);
        }
    }
}

/// Waits at most the given number of milliseconds for one of the events. Returns true if one occurred.
pub fn wait(fd: BorrowedFd<'_>, events: i16, milliseconds: c_int) -> bool {
    let mut item = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one item.
    unsafe { libc::poll(&mut item, 1, milliseconds) > 0 }
}

/// Returns the opening bytes of a correct peer for a socket of this type, over WebSocket or not.
pub fn opening_bytes(kind: u8, websocket: bool) -> Vec<u8> {
    let names = [
        "PAIR", "SUB", "PUB", "REP", "REQ", "DEALER", "DEALER", "PUSH", "PULL", "SUB", "PUB", "", "CLIENT",
        "SERVER", "DISH", "RADIO", "SCATTER", "", "", "PEER",
    ];
    let mut ready = b"\x04\0\x05READY".to_vec();
    tautline_proto::metadata::put_property(&mut ready, "Socket-Type", names[usize::from(kind)].as_bytes());
    ready[1] = ready.len() as u8 - 2;
    if websocket {
        let mut stream = upgrade("NULL");
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

/// Returns a client's request for a WebSocket that carries ZMTP with this mechanism.
pub fn upgrade(mechanism: &str) -> Vec<u8> {
    format!(
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: ZWS2.0/{mechanism}\r\n\r\n"
    )
    .into_bytes()
}
