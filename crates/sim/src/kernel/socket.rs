//! Stream sockets over tcp and of the Unix domain, and datagram sockets.
//!
//! The bytes of a tcp socket wait in its `outbox`. An event [`Deliver`](Event::Deliver) moves them
//! to the peer's `inbox` as far as there is room. Delivered bytes count as confirmed. With a
//! latency of 0, the writing call itself delivers them, as on the loopback device. A Unix-domain
//! socket writes directly into the peer's inbox. Descriptors travel with the first byte of a chunk.

use std::collections::{BTreeMap, VecDeque};

use super::{Body, Event, Fd, Id, Kernel, SysResult};
use crate::faults::EPHEMERAL;

mod bytes;
mod datagrams;
mod ends;
mod interfaces;
mod options;

pub(super) use datagrams::DatagramInFlight;
pub(crate) use interfaces::INTERFACES;

/// Socket address in the format of the system calls.
pub(super) type Name = Vec<u8>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketState {
    New,
    Listening,
    Connecting,
    Connected,
    /// The socket was connected, or its connect failed.
    Ended,
}

pub(crate) struct Socket {
    domain: i32,
    kind: i32,
    state: SocketState,
    pub(crate) local: Option<Name>,
    /// True if the system chose the local port in `connect`. No listener can have that port.
    has_chosen_port: bool,
    pub(crate) remote: Option<Name>,
    peer: Option<Id>,
    /// Connections that are not accepted yet.
    backlog: VecDeque<Id>,
    backlog_limit: usize,
    inbox: VecDeque<Chunk>,
    inbox_bytes: usize,
    /// Received datagrams, each with its sender.
    datagrams: VecDeque<(Name, Vec<u8>)>,
    /// Joined multicast groups, each on an interface.
    groups: Vec<([u8; 16], u32)>,
    /// Outgoing interface of multicast, and the interface to which the socket is bound, if set.
    multicast_interface: Option<u32>,
    device: Option<u32>,
    outbox: VecDeque<u8>,
    /// True while a delivery is scheduled.
    delivering: bool,
    send_buffer: usize,
    receive_buffer: usize,
    latency: (u64, u64),
    /// True if reading, or writing, is shut down.
    shut: (bool, bool),
    /// The peer's end of stream was received; this socket's end of stream was delivered.
    ended: bool,
    end_delivered: bool,
    /// The peer's end of stream came in order. Reading reports no error after it.
    done: bool,
    error: i32,
    /// All descriptors are closed.
    closed: bool,
    options: BTreeMap<(i32, i32), Vec<u8>>,
}

struct Chunk {
    bytes: VecDeque<u8>,
    rights: Vec<Id>,
}

/// Result of recvmsg(2).
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) length: usize,
    pub(crate) rights: Vec<Id>,
}

/// Bytes that a Unix-domain chunk counts in addition to its data.
const OVERHEAD: usize = 512;

const SO_PASSRIGHTS: i32 = 83;

impl Socket {
    pub(crate) fn new(kernel: &mut Kernel, domain: i32, kind: i32) -> Self {
        let (low, high) = kernel.faults.buffer;
        let latency = match kernel.faults.latency {
            (_, 0) => (0, 0),
            (low, high) => {
                let base = kernel.rng.between(low, high);
                (base, base + base / 4)
            }
        };
        Socket {
            domain,
            kind,
            state: SocketState::New,
            local: None,
            has_chosen_port: false,
            remote: None,
            peer: None,
            backlog: VecDeque::new(),
            backlog_limit: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            datagrams: VecDeque::new(),
            groups: Vec::new(),
            multicast_interface: None,
            device: None,
            outbox: VecDeque::new(),
            delivering: false,
            send_buffer: kernel.rng.spread(low, high) as usize,
            receive_buffer: kernel.rng.spread(low, high) as usize,
            latency,
            shut: (false, false),
            ended: false,
            end_delivered: false,
            done: false,
            error: 0,
            closed: false,
            options: BTreeMap::new(),
        }
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "{} socket {:?}, peer {:?}, {} bytes to read, {} on their way, ended {}, shut {:?}, error {}, {} wait",
            if self.is_unix() { "unix" } else { "tcp" },
            self.state,
            self.peer,
            self.inbox_bytes,
            self.outbox.len(),
            self.ended,
            self.shut,
            self.error,
            self.backlog.len()
        )
    }

    fn is_unix(&self) -> bool {
        self.domain == libc::AF_UNIX
    }

    fn used(&self) -> usize {
        self.inbox_bytes + self.inbox.len() * OVERHEAD
    }
}

/// Returns address and port of a name, as comparable bytes. Zeroes mean any address.
fn inet(name: &[u8]) -> Option<([u8; 16], u16)> {
    let family = i32::from(u16::from_ne_bytes(*name.first_chunk()?));
    let port = u16::from_be_bytes([*name.get(2)?, *name.get(3)?]);
    let mut ip = [0; 16];
    match family {
        libc::AF_INET => {
            let v4: &[u8; 4] = name.get(4..8)?.first_chunk()?;
            if v4 != &[0; 4] {
                ip[10..12].fill(0xff);
                ip[12..].copy_from_slice(v4);
            }
        }
        libc::AF_INET6 => ip.copy_from_slice(name.get(8..24)?),
        _ => return None,
    }
    Some((ip, port))
}

/// Returns the path, or the abstract name, of a Unix-domain name.
fn path(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.get(2..)?;
    match rest.first()? {
        0 => Some(rest.to_vec()),
        _ => Some(rest.split(|byte| *byte == 0).next()?.to_vec()),
    }
}

impl Kernel {
    pub(crate) fn socket(&mut self, domain: i32, kind: i32) -> SysResult<Fd> {
        if !matches!(domain, libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX) {
            return Err(libc::EAFNOSUPPORT);
        }
        let kind = kind & 0xf;
        if self.is_full() {
            return Err(libc::EMFILE);
        }
        if kind == libc::SOCK_DGRAM && domain == libc::AF_UNIX {
            return Ok(self.open_new(Body::Idle));
        }
        if kind != libc::SOCK_STREAM && (kind != libc::SOCK_DGRAM || domain == libc::AF_UNIX) {
            return Err(libc::EPROTONOSUPPORT);
        }
        let socket = Socket::new(self, domain, kind);
        Ok(self.open_new(Body::Socket(Box::new(socket))))
    }

    pub(crate) fn socket_pair(&mut self) -> (Fd, Fd) {
        let ids = [(); 2].map(|()| {
            let socket = Socket::new(self, libc::AF_UNIX, libc::SOCK_STREAM);
            self.add(Body::Socket(Box::new(socket)))
        });
        for (id, peer) in [(ids[0], ids[1]), (ids[1], ids[0])] {
            let socket = self.must(id);
            (socket.peer, socket.state) = (Some(peer), SocketState::Connected);
            let unnamed = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
            (socket.local, socket.remote) = (Some(unnamed.clone()), Some(unnamed));
        }
        (self.open(ids[0]), self.open(ids[1]))
    }

    /// True for a tcp or Unix-domain stream that is connected or connecting.
    pub(super) fn is_connection(&self, id: Id) -> bool {
        match self.objects.get(&id).map(|object| &object.body) {
            Some(Body::Socket(socket)) => {
                matches!(socket.state, SocketState::Connected | SocketState::Connecting)
            }
            _ => false,
        }
    }

    fn get(&mut self, id: Id) -> Option<&mut Socket> {
        match &mut self.objects.get_mut(&id)?.body {
            Body::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    fn must(&mut self, id: Id) -> &mut Socket {
        self.get(id).expect("a socket that is there")
    }

    pub(crate) fn is_socket(&mut self, fd: Fd) -> bool {
        self.id(fd).ok().and_then(|id| self.get(id)).is_some()
    }

    pub(crate) fn socket_of(&mut self, fd: Fd) -> SysResult<(Id, &mut Socket)> {
        let id = self.id(fd)?;
        self.get(id).map(|socket| (id, socket)).ok_or(libc::ENOTSOCK)
    }

    // ---- making connections

    fn free_port(&mut self) -> u16 {
        loop {
            self.next_port = self.next_port.checked_add(1).unwrap_or(40_000);
            let port = self.next_port;
            let taken = self.objects.values().any(|object| match &object.body {
                Body::Socket(socket) => {
                    socket.local.as_deref().and_then(inet).is_some_and(|(_, used)| used == port)
                }
                _ => false,
            });
            if !taken {
                return port;
            }
        }
    }

    pub(crate) fn bind(&mut self, fd: Fd, name: &[u8]) -> SysResult {
        let is_dead = self.is_dead;
        let (id, socket) = self.socket_of(fd)?;
        if socket.state != SocketState::New || socket.local.is_some() {
            return Err(libc::EINVAL);
        }
        if is_dead {
            return Err(libc::EADDRINUSE);
        }
        let mut name = name.to_vec();
        if socket.is_unix() {
            let path = path(&name).ok_or(libc::EINVAL)?;
            if self.paths.get(&path).is_some_and(|(_, open)| path[0] != 0 || open.is_some()) {
                return Err(libc::EADDRINUSE);
            }
            self.next_inode += 1;
            self.paths.insert(path, (self.next_inode, Some(id)));
        } else {
            let (ip, mut port) = inet(&name).ok_or(libc::EAFNOSUPPORT)?;
            if !interfaces::is_own(&ip) && !interfaces::is_group(&ip) {
                return Err(libc::EADDRNOTAVAIL);
            }
            if port == 0 {
                port = self.free_port();
                name[2..4].copy_from_slice(&port.to_be_bytes());
            } else if self.listener(&ip, port).is_some() || self.is_taken(id, &ip, port) || self.is_held(port)
            {
                return Err(libc::EADDRINUSE);
            }
        }
        self.must(id).local = Some(name);
        Ok(0)
    }

    pub(crate) fn listen(&mut self, fd: Fd, backlog: i32) -> SysResult {
        let (id, socket) = self.socket_of(fd)?;
        if !matches!(socket.state, SocketState::New | SocketState::Listening) {
            return Err(libc::EINVAL);
        }
        let address = socket.local.as_deref().and_then(inet);
        if let Some((ip, port)) = address
            && self.listener(&ip, port).is_some_and(|other| other != id)
        {
            return Err(libc::EADDRINUSE);
        }
        let socket = self.must(id);
        socket.state = SocketState::Listening;
        // A negative backlog means the system's maximum.
        socket.backlog_limit = usize::try_from(backlog).unwrap_or(4096).min(4096);
        Ok(0)
    }

    /// True if a tcp client has the port, or had it less than a minute ago.
    fn is_held(&self, port: u16) -> bool {
        self.waiting_ports.get(&port).is_some_and(|end| *end > self.now)
            || self.objects.values().any(|object| match &object.body {
                Body::Socket(socket) if socket.has_chosen_port && !socket.closed => {
                    socket.local.as_deref().and_then(inet).is_some_and(|(_, own)| own == port)
                }
                _ => false,
            })
    }

    /// Returns the socket that listens at an address.
    fn listener(&self, ip: &[u8; 16], port: u16) -> Option<Id> {
        self.objects.iter().find_map(|(id, object)| match &object.body {
            Body::Socket(socket) if socket.state == SocketState::Listening && !socket.closed => {
                let (own, own_port) = inet(socket.local.as_deref()?)?;
                let hears = own == *ip || own == [0; 16] || *ip == [0; 16];
                (own_port == port && hears).then_some(*id)
            }
            _ => None,
        })
    }

    fn travel(&mut self, id: Id) -> u64 {
        let (low, high) = self.get(id).map_or((0, 0), |socket| socket.latency);
        self.rng.between(low, high)
    }

    pub(crate) fn connect(&mut self, fd: Fd, name: &[u8]) -> SysResult {
        let (id, socket) = self.socket_of(fd)?;
        match socket.state {
            SocketState::New => {}
            SocketState::Connecting => return Err(libc::EALREADY),
            SocketState::Connected => return Err(libc::EISCONN),
            SocketState::Listening => return Err(libc::EINVAL),
            SocketState::Ended => return Err(libc::ECONNABORTED),
        }
        let unix = socket.is_unix();
        if self.is_dead {
            return Err(libc::ECONNREFUSED);
        }
        if unix {
            let path = path(name).ok_or(libc::EINVAL)?;
            let unknown = if path[0] == 0 { libc::ECONNREFUSED } else { libc::ENOENT };
            let (_, listener) = *self.paths.get(&path).ok_or(unknown)?;
            let listener = listener.ok_or(libc::ECONNREFUSED)?;
            let one_in = self.faults.refused;
            let there = self.get(listener).filter(|there| there.state == SocketState::Listening);
            let there = there.ok_or(libc::ECONNREFUSED)?;
            if there.backlog.len() > there.backlog_limit {
                return Err(libc::EAGAIN);
            }
            if self.draw_fault(one_in) {
                return Err(libc::EAGAIN);
            }
            self.queue_connection(id, listener, name);
            self.establish(id);
            return Ok(0);
        }
        let (ip, wanted) = inet(name).ok_or(libc::EAFNOSUPPORT)?;
        let mut port = self.free_port();
        let one_in = self.faults.itself;
        let is_free = wanted >= EPHEMERAL && self.listener(&ip, wanted).is_none() && !self.is_held(wanted);
        if is_free && self.draw_fault(one_in) {
            port = wanted;
        }
        let socket = self.must(id);
        socket.remote = Some(name.to_vec());
        socket.state = SocketState::Connecting;
        let mut local = socket.local.take().unwrap_or_else(|| source_for(name));
        if local[2..4] == [0, 0] {
            local[2..4].copy_from_slice(&port.to_be_bytes());
            socket.has_chosen_port = true;
        }
        socket.local = Some(local);
        let delay = self.travel(id);
        match delay {
            0 => self.arrive_syn(id, 0),
            _ => self.schedule_after(delay, Event::Syn(id, 0)),
        }
        Err(libc::EINPROGRESS)
    }

    /// Handles an arriving connection request.
    pub(super) fn arrive_syn(&mut self, id: Id, tries: u8) {
        let Some(socket) = self.get(id).filter(|socket| socket.state == SocketState::Connecting) else {
            return;
        };
        let name = socket.remote.clone().unwrap_or_default();
        if socket.local == socket.remote {
            // A simultaneous open: the socket meets its own request.
            socket.peer = Some(id);
            return self.establish(id);
        }
        let back = self.travel(id);
        let listener = inet(&name).and_then(|(ip, port)| self.listener(&ip, port));
        let one_in = self.faults.refused;
        let fails = self.draw_fault(one_in);
        let is_lost = fails && self.rng.chance(2);
        let is_nowhere = inet(&name).is_some_and(|(ip, _)| !interfaces::is_own(&ip));
        let Some(listener) = listener.filter(|_| !fails || is_lost).or(is_nowhere.then_some(id)) else {
            return self.schedule_after(back, Event::Reset(id, libc::ECONNREFUSED));
        };
        let there = self.must(listener);
        if is_nowhere || is_lost || there.backlog.len() > there.backlog_limit {
            // As on Linux, the SYN gets no answer, and the client sends it again.
            return match tries {
                6 => self.schedule_after(0, Event::Reset(id, libc::ETIMEDOUT)),
                _ => self.schedule_after(1_000_000_000 << tries, Event::Syn(id, tries + 1)),
            };
        }
        self.queue_connection(id, listener, &name);
        match back {
            0 => self.establish(id),
            _ => self.schedule_after(back, Event::Established(id)),
        }
    }

    /// Creates the server's end, and queues it to be accepted.
    fn queue_connection(&mut self, id: Id, listener: Id, name: &[u8]) {
        let domain = self.must(listener).domain;
        let mut other = Socket::new(self, domain, libc::SOCK_STREAM);
        let client = self.must(id);
        let unnamed = || (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        other.latency = client.latency;
        (other.peer, other.state) = (Some(id), SocketState::Connected);
        other.remote = Some(client.local.clone().unwrap_or_else(unnamed));
        other.local = Some(name.to_vec());
        let server = self.add(Body::Socket(Box::new(other)));
        let client = self.must(id);
        client.peer = Some(server);
        client.remote = Some(name.to_vec());
        self.hold(server);
        self.must(listener).backlog.push_back(server);
        self.changes += 1;
    }

    pub(super) fn establish(&mut self, id: Id) {
        if let Some(socket) =
            self.get(id).filter(|socket| matches!(socket.state, SocketState::Connecting | SocketState::New))
        {
            socket.state = SocketState::Connected;
            self.changes += 1;
        }
    }

    pub(crate) fn accept(&mut self, fd: Fd) -> SysResult<Fd> {
        let (id, socket) = self.socket_of(fd)?;
        if socket.state != SocketState::Listening {
            return Err(libc::EINVAL);
        }
        if socket.backlog.is_empty() {
            return Err(libc::EAGAIN);
        }
        let one_in = self.faults.descriptors;
        if self.is_full() || self.draw_fault(one_in) {
            return Err(libc::EMFILE);
        }
        let Some(server) = self.must(id).backlog.pop_front() else { return Err(libc::EAGAIN) };
        let fd = self.open(server);
        // Reference held by the backlog.
        self.release(server);
        Ok(fd)
    }
}

/// Returns the source address of a connection to `name`: the same address, without a port.
fn source_for(name: &[u8]) -> Name {
    let mut local = name.to_vec();
    local[2..4].fill(0);
    local
}
