//! Stream sockets over tcp and of the Unix domain.
//!
//! The bytes of a tcp socket wait in its `outbox` until an [`Event::Deliver`] takes them over to the
//! peer's `inbox`, as far as there is room; what was delivered counts as confirmed. With a latency
//! of 0 that happens within the call that writes, as on the loopback device. A socket of the Unix
//! domain puts its bytes into the peer's inbox itself. Descriptors travel with the first byte of a
//! chunk.

use std::collections::{BTreeMap, VecDeque};

use super::{Answer, Body, Event, Fd, Id, Kernel};

/// A socket address, as the calls take it.
pub(super) type Name = Vec<u8>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Listening,
    Connecting,
    Connected,
    /// It was connected, or its connect has failed.
    Over,
}

pub(crate) struct Socket {
    domain: i32,
    kind: i32,
    state: State,
    pub(crate) local: Option<Name>,
    pub(crate) remote: Option<Name>,
    peer: Option<Id>,
    /// Connections that were not accepted yet.
    backlog: VecDeque<Id>,
    most_waiting: usize,
    inbox: VecDeque<Chunk>,
    inbox_bytes: usize,
    outbox: VecDeque<u8>,
    /// A delivery is on its way.
    delivering: bool,
    send_buffer: usize,
    receive_buffer: usize,
    latency: (u64, u64),
    /// Nothing will be read, or written, any more.
    shut: (bool, bool),
    /// The end of what the peer sends was received; that of this one was delivered.
    ended: bool,
    end_delivered: bool,
    error: i32,
    /// No descriptor is left.
    closed: bool,
    options: BTreeMap<(i32, i32), Vec<u8>>,
}

struct Chunk {
    bytes: VecDeque<u8>,
    rights: Vec<Id>,
}

/// What recvmsg(2) returns.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) length: usize,
    pub(crate) rights: Vec<Id>,
}

/// What a chunk of the Unix domain counts beside its bytes.
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
            state: State::New,
            local: None,
            remote: None,
            peer: None,
            backlog: VecDeque::new(),
            most_waiting: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            outbox: VecDeque::new(),
            delivering: false,
            send_buffer: kernel.rng.spread(low, high) as usize,
            receive_buffer: kernel.rng.spread(low, high) as usize,
            latency,
            shut: (false, false),
            ended: false,
            end_delivered: false,
            error: 0,
            closed: false,
            options: BTreeMap::new(),
        }
    }

    fn is_unix(&self) -> bool {
        self.domain == libc::AF_UNIX
    }

    fn used(&self) -> usize {
        self.inbox_bytes + self.inbox.len() * OVERHEAD
    }
}

/// Address and port of a name, as bytes that compare; zeroes are any address.
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

/// The path, or abstract name, of a name of the Unix domain.
fn path(name: &[u8]) -> Option<Vec<u8>> {
    let rest = name.get(2..)?;
    match rest.first()? {
        0 => Some(rest.to_vec()),
        _ => Some(rest.split(|byte| *byte == 0).next()?.to_vec()),
    }
}

impl Kernel {
    pub(crate) fn socket(&mut self, domain: i32, kind: i32) -> Answer<Fd> {
        if !matches!(domain, libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX) {
            return Err(libc::EAFNOSUPPORT);
        }
        let kind = kind & 0xf;
        if kind != libc::SOCK_STREAM {
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
            (socket.peer, socket.state) = (Some(peer), State::Connected);
            let unnamed = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
            (socket.local, socket.remote) = (Some(unnamed.clone()), Some(unnamed));
        }
        (self.open(ids[0]), self.open(ids[1]))
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

    pub(crate) fn socket_of(&mut self, fd: Fd) -> Answer<(Id, &mut Socket)> {
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

    pub(crate) fn bind(&mut self, fd: Fd, name: &[u8]) -> Answer {
        let (id, socket) = self.socket_of(fd)?;
        if socket.state != State::New || socket.local.is_some() {
            return Err(libc::EINVAL);
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
            if port == 0 {
                port = self.free_port();
                name[2..4].copy_from_slice(&port.to_be_bytes());
            } else if self.listener(&ip, port).is_some() {
                return Err(libc::EADDRINUSE);
            }
        }
        self.must(id).local = Some(name);
        Ok(0)
    }

    pub(crate) fn listen(&mut self, fd: Fd, backlog: i32) -> Answer {
        let (id, socket) = self.socket_of(fd)?;
        if !matches!(socket.state, State::New | State::Listening) {
            return Err(libc::EINVAL);
        }
        let address = socket.local.as_deref().and_then(inet);
        if let Some((ip, port)) = address
            && self.listener(&ip, port).is_some_and(|other| other != id)
        {
            return Err(libc::EADDRINUSE);
        }
        let socket = self.must(id);
        socket.state = State::Listening;
        socket.most_waiting = usize::try_from(backlog).unwrap_or(0).min(4096);
        Ok(0)
    }

    /// Who listens there.
    fn listener(&self, ip: &[u8; 16], port: u16) -> Option<Id> {
        self.objects.iter().find_map(|(id, object)| match &object.body {
            Body::Socket(socket) if socket.state == State::Listening && !socket.closed => {
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

    pub(crate) fn connect(&mut self, fd: Fd, name: &[u8]) -> Answer {
        let (id, socket) = self.socket_of(fd)?;
        match socket.state {
            State::New => {}
            State::Connecting => return Err(libc::EALREADY),
            State::Connected => return Err(libc::EISCONN),
            State::Listening => return Err(libc::EINVAL),
            State::Over => return Err(libc::ECONNABORTED),
        }
        if socket.is_unix() {
            let path = path(name).ok_or(libc::EINVAL)?;
            let unknown = if path[0] == 0 { libc::ECONNREFUSED } else { libc::ENOENT };
            let (_, listener) = *self.paths.get(&path).ok_or(unknown)?;
            let listener = listener.ok_or(libc::ECONNREFUSED)?;
            let one_in = self.faults.refused;
            let there = self.get(listener).filter(|there| there.state == State::Listening);
            let there = there.ok_or(libc::ECONNREFUSED)?;
            if there.backlog.len() > there.most_waiting {
                return Err(libc::EAGAIN);
            }
            if self.rng.chance(one_in) {
                return Err(libc::EAGAIN);
            }
            self.join(id, listener, name);
            self.establish(id);
            return Ok(0);
        }
        inet(name).ok_or(libc::EAFNOSUPPORT)?;
        let port = self.free_port();
        let socket = self.must(id);
        socket.remote = Some(name.to_vec());
        socket.state = State::Connecting;
        let mut local = socket.local.take().unwrap_or_else(|| source_for(name));
        if local[2..4] == [0, 0] {
            local[2..4].copy_from_slice(&port.to_be_bytes());
        }
        socket.local = Some(local);
        let delay = self.travel(id);
        match delay {
            0 => self.arrive_syn(id, 0),
            _ => self.after(delay, Event::Syn(id, 0)),
        }
        Err(libc::EINPROGRESS)
    }

    /// A request to connect arrives.
    pub(super) fn arrive_syn(&mut self, id: Id, tries: u8) {
        let Some(socket) = self.get(id).filter(|socket| socket.state == State::Connecting) else { return };
        let name = socket.remote.clone().unwrap_or_default();
        let back = self.travel(id);
        let listener = inet(&name).and_then(|(ip, port)| self.listener(&ip, port));
        let one_in = self.faults.refused;
        let Some(listener) = listener.filter(|_| !self.rng.chance(one_in)) else {
            return self.after(back, Event::Reset(id, libc::ECONNREFUSED));
        };
        let there = self.must(listener);
        if there.backlog.len() > there.most_waiting {
            // As Linux does: not answered, and sent again.
            return match tries {
                6 => self.after(0, Event::Reset(id, libc::ETIMEDOUT)),
                _ => self.after(1_000_000_000 << tries, Event::Syn(id, tries + 1)),
            };
        }
        self.join(id, listener, &name);
        match back {
            0 => self.establish(id),
            _ => self.after(back, Event::Established(id)),
        }
    }

    /// Makes the other end, and lets it wait to be accepted.
    fn join(&mut self, id: Id, listener: Id, name: &[u8]) {
        let domain = self.must(listener).domain;
        let mut other = Socket::new(self, domain, libc::SOCK_STREAM);
        let client = self.must(id);
        let unnamed = || (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
        other.latency = client.latency;
        (other.peer, other.state) = (Some(id), State::Connected);
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
        if let Some(socket) = self.get(id).filter(|socket| matches!(socket.state, State::Connecting | State::New)) {
            socket.state = State::Connected;
            self.changes += 1;
        }
    }

    pub(crate) fn accept(&mut self, fd: Fd) -> Answer<Fd> {
        let (id, socket) = self.socket_of(fd)?;
        if socket.state != State::Listening {
            return Err(libc::EINVAL);
        }
        if socket.backlog.is_empty() {
            return Err(libc::EAGAIN);
        }
        let one_in = self.faults.descriptors;
        if self.rng.chance(one_in) {
            return Err(libc::EMFILE);
        }
        let Some(server) = self.must(id).backlog.pop_front() else { return Err(libc::EAGAIN) };
        let fd = self.open(server);
        // The backlog's.
        self.release(server);
        Ok(fd)
    }

    // ---- the ends of connections

    /// The last descriptor is gone.
    pub(super) fn close_socket(&mut self, id: Id) {
        let socket = self.must(id);
        let (state, unix, unread) = (socket.state, socket.is_unix(), socket.inbox_bytes > 0);
        socket.closed = true;
        socket.shut = (true, true);
        let local = socket.local.clone();
        let peer = socket.peer;
        let aborts = !unix && socket.options.get(&(libc::SOL_SOCKET, libc::SO_LINGER)).is_some_and(|linger| {
            linger.first_chunk::<8>().is_some_and(|linger| linger[0] != 0 && linger[4..] == [0; 4])
        });
        let rights: Vec<Id> = socket.inbox.drain(..).flat_map(|chunk| chunk.rights).collect();
        let waiting = std::mem::take(&mut socket.backlog);
        for id in rights {
            self.release(id);
        }
        for id in waiting {
            // Nobody has accepted it: its peer is told by a reset.
            let peer = self.get(id).and_then(|socket| socket.peer);
            if let Some(peer) = peer {
                let delay = self.travel(peer);
                self.after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            self.objects.remove(&id);
        }
        if state == State::Listening {
            if let Some((_, open)) = local.as_deref().and_then(path).and_then(|path| self.paths.get_mut(&path))
                && *open == Some(id)
            {
                *open = None;
            }
            self.paths.retain(|path, (_, open)| path[0] != 0 || open.is_some());
        }
        match (state, peer) {
            (State::Connected, Some(peer)) if unix => {
                if let Some(peer) = self.get(peer) {
                    peer.shut = (true, true);
                    peer.ended = true;
                    peer.state = State::Over;
                    if unread {
                        peer.error = libc::ECONNRESET;
                    }
                }
                self.objects.remove(&id);
            }
            (State::Connected, Some(peer)) if unread || aborts => {
                let delay = self.travel(id);
                self.objects.remove(&id);
                self.after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            (State::Connected, Some(_)) => self.start_delivery(id),
            (State::Connecting, Some(peer)) => {
                let delay = self.travel(id);
                self.objects.remove(&id);
                self.after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            _ => drop(self.objects.remove(&id)),
        }
    }

    /// A reset, or a refusal, arrives.
    pub(super) fn reset(&mut self, id: Id, error: i32) {
        let Some(socket) = self.get(id) else { return };
        if socket.closed {
            self.objects.remove(&id);
            return;
        }
        if socket.state == State::Over {
            return;
        }
        // As tcp_reset of Linux does.
        let after_the_end = socket.ended && error == libc::ECONNRESET;
        socket.error = if after_the_end { libc::EPIPE } else { error };
        socket.state = State::Over;
        socket.shut = (true, true);
        socket.ended = true;
        socket.outbox.clear();
        self.changes += 1;
    }

    pub(crate) fn shutdown(&mut self, fd: Fd, how: i32) -> Answer {
        let (id, socket) = self.socket_of(fd)?;
        if socket.state != State::Connected {
            return Err(libc::ENOTCONN);
        }
        let (read, write) = (how != libc::SHUT_WR, how != libc::SHUT_RD);
        socket.shut = (socket.shut.0 || read, socket.shut.1 || write);
        let (unix, peer) = (socket.is_unix(), socket.peer);
        self.changes += 1;
        if !unix && write {
            self.start_delivery(id);
        } else if let Some(peer) = peer.filter(|_| unix).and_then(|peer| self.get(peer)) {
            peer.shut = (peer.shut.0 || write, peer.shut.1 || read);
            peer.ended = peer.ended || write;
        }
        Ok(0)
    }

    // ---- bytes

    fn room(&self, socket: &Socket) -> usize {
        if !socket.is_unix() {
            return socket.send_buffer.saturating_sub(socket.outbox.len());
        }
        let peer = socket.peer.and_then(|peer| self.objects.get(&peer)).map(|peer| &peer.body);
        let used = if let Some(Body::Socket(peer)) = peer { peer.used() } else { 0 };
        socket.send_buffer.saturating_sub(used)
    }

    /// How many bytes a socket would take.
    pub(crate) fn room_of(&self, fd: Fd) -> Answer<usize> {
        match &self.objects[&self.id(fd)?].body {
            Body::Socket(socket) => Ok(self.room(socket)),
            _ => Err(libc::ENOTSOCK),
        }
    }

    fn is_writable(&self, socket: &Socket) -> bool {
        let room = self.room(socket);
        let used = socket.send_buffer - room.min(socket.send_buffer);
        if socket.is_unix() { used * 4 <= socket.send_buffer } else { room >= used / 2 && room > 0 }
    }

    pub(super) fn socket_readiness(&self, socket: &Socket) -> u32 {
        let mut mask = 0;
        if socket.state == State::Listening {
            return if socket.backlog.is_empty() { 0 } else { libc::EPOLLIN as u32 };
        }
        if socket.error != 0 {
            mask |= libc::EPOLLERR;
        }
        let over = match socket.state {
            State::Over => true,
            State::New => true,
            _ => socket.ended && socket.shut.1 && (socket.is_unix() || socket.end_delivered)
                || socket.shut == (true, true),
        };
        if over {
            mask |= libc::EPOLLHUP;
        }
        if socket.ended || socket.shut.0 {
            mask |= libc::EPOLLIN | libc::EPOLLRDHUP;
        }
        if socket.inbox_bytes > 0 {
            mask |= libc::EPOLLIN;
        }
        let can_write = match socket.state {
            State::Connecting => false,
            _ => socket.shut.1 && !socket.is_unix() || self.is_writable(socket),
        };
        if can_write {
            mask |= libc::EPOLLOUT;
        }
        mask as u32
    }

    pub(crate) fn send(&mut self, fd: Fd, bytes: &[u8], rights: &[Fd]) -> Answer<usize> {
        let mut enclosed = Vec::new();
        for right in rights {
            enclosed.push(self.id(*right)?);
        }
        let (id, socket) = self.socket_of(fd)?;
        if socket.error != 0 && !socket.is_unix() {
            return Err(std::mem::take(&mut socket.error));
        }
        match socket.state {
            State::Connecting => return Err(libc::EAGAIN),
            State::New | State::Listening => {
                return Err(if socket.is_unix() { libc::ENOTCONN } else { libc::EPIPE });
            }
            State::Over => return Err(libc::EPIPE),
            State::Connected if socket.shut.1 => return Err(libc::EPIPE),
            State::Connected => {}
        }
        let (unix, peer) = (socket.is_unix(), socket.peer);
        let Some(Body::Socket(socket)) = self.objects.get(&id).map(|object| &object.body) else {
            return Err(libc::EBADF);
        };
        let room = self.room(socket);
        let (again, partial) = (self.faults.again, self.faults.partial);
        // A socket of the Unix domain that holds nothing takes something.
        let may_refuse = !unix || room < socket.send_buffer;
        if room == 0 || may_refuse && self.rng.chance(again) {
            return Err(libc::EAGAIN);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut n = bytes.len().min(room);
        if self.rng.chance(partial) {
            n = self.rng.between(1, n as u64) as usize;
        }
        self.changes += 1;
        if !unix {
            self.must(id).outbox.extend(&bytes[..n]);
            self.start_delivery(id);
            return Ok(n);
        }
        let Some(peer) = peer.filter(|peer| self.objects.contains_key(peer)) else { return Err(libc::EPIPE) };
        let admits = self.must(peer).options.get(&(libc::SOL_SOCKET, SO_PASSRIGHTS)).is_none_or(|value| value[0] != 0);
        if !enclosed.is_empty() && !admits {
            return Err(libc::EPERM);
        }
        for right in &enclosed {
            self.hold(*right);
        }
        let peer = self.must(peer);
        peer.inbox_bytes += n;
        peer.inbox.push_back(Chunk { bytes: bytes[..n].iter().copied().collect(), rights: enclosed });
        Ok(n)
    }

    /// Sees to it that what is in the outbox, or the end, will arrive.
    fn start_delivery(&mut self, id: Id) {
        let Some(socket) = self.get(id).filter(|socket| !socket.delivering) else { return };
        socket.delivering = true;
        match self.travel(id) {
            0 => self.deliver(id),
            delay => self.after(delay, Event::Deliver(id)),
        }
    }

    /// Bytes of `id` arrive at its peer.
    pub(super) fn deliver(&mut self, id: Id) {
        let Some(socket) = self.get(id) else { return };
        socket.delivering = false;
        let (peer, unsent) = (socket.peer, socket.outbox.len());
        let reset = self.faults.reset;
        if self.faults.resets > 0 && self.rng.chance(reset) {
            self.faults.resets -= 1;
            self.reset(id, libc::ECONNRESET);
            if let Some(peer) = peer {
                self.reset(peer, libc::ECONNRESET);
            }
            return;
        }
        let there = peer.and_then(|peer| self.get(peer)).filter(|there| !there.closed && there.state != State::Over);
        let Some(there) = there else {
            // Nobody is there any more: a byte is answered with a reset, the end is not.
            if unsent > 0 {
                let delay = self.travel(id);
                return self.after(delay, Event::Reset(id, libc::ECONNRESET));
            }
            self.must(id).end_delivered = true;
            return self.bury(id);
        };
        let window = there.receive_buffer.saturating_sub(there.inbox_bytes);
        let mut n = unsent.min(window);
        if n < unsent && n == 0 {
            // The reader starts it again.
            return;
        }
        let partial = self.faults.partial;
        if n > 1 && self.rng.chance(partial) {
            n = self.rng.between(1, n as u64) as usize;
        }
        let socket = self.must(id);
        let bytes: VecDeque<u8> = socket.outbox.drain(..n).collect();
        let rest = socket.outbox.len();
        let ends = rest == 0 && socket.shut.1 && !socket.end_delivered;
        socket.end_delivered = socket.end_delivered || ends;
        if let Some(there) = peer.and_then(|peer| self.get(peer)) {
            if n > 0 && !there.shut.0 {
                there.inbox_bytes += n;
                there.inbox.push_back(Chunk { bytes, rights: Vec::new() });
            }
            there.ended = there.ended || ends;
        }
        self.changes += 1;
        if rest > 0 {
            self.must(id).delivering = true;
            let pause = self.travel(id) / 8 + 1_000;
            self.after(pause, Event::Deliver(id));
        }
        if ends {
            self.bury(id);
        }
    }

    /// A closed socket whose end was delivered is gone.
    fn bury(&mut self, id: Id) {
        if self.get(id).is_some_and(|socket| socket.closed) {
            self.objects.remove(&id);
        }
    }

    pub(crate) fn receive(&mut self, fd: Fd, into: &mut dyn FnMut(&[u8]), most: usize, peek: bool) -> Answer<Received> {
        let partial = self.faults.partial;
        let short = self.rng.chance(partial);
        let cut = self.rng.between(1, most.max(1) as u64) as usize;
        let (_, socket) = self.socket_of(fd)?;
        match socket.state {
            State::New | State::Listening => {
                return Err(if socket.is_unix() { libc::EINVAL } else { libc::ENOTCONN });
            }
            State::Connecting => return Err(libc::EAGAIN),
            State::Connected | State::Over => {}
        }
        if socket.inbox_bytes == 0 {
            if socket.error != 0 {
                return Err(std::mem::take(&mut socket.error));
            }
            return if socket.ended || socket.shut.0 { Ok(Received::default()) } else { Err(libc::EAGAIN) };
        }
        let most = if short { cut.min(most) } else { most };
        let mut received = Received::default();
        while received.length < most {
            let Some(chunk) = socket.inbox.front_mut() else { break };
            let n = chunk.bytes.len().min(most - received.length);
            let (first, second) = chunk.bytes.as_slices();
            into(&first[..n.min(first.len())]);
            into(&second[..n.saturating_sub(first.len())]);
            received.length += n;
            if peek {
                break;
            }
            chunk.bytes.drain(..n);
            socket.inbox_bytes -= n;
            received.rights.append(&mut chunk.rights);
            if !chunk.bytes.is_empty() {
                break;
            }
            socket.inbox.pop_front();
            if !received.rights.is_empty() {
                break;
            }
        }
        let (unix, peer) = (socket.is_unix(), socket.peer);
        self.changes += 1;
        // There is room again for what the peer has still to send.
        if let Some(peer) = peer.filter(|_| !unix)
            && self.get(peer).is_some_and(|there| !there.outbox.is_empty() && !there.delivering)
        {
            self.must(peer).delivering = true;
            let delay = self.travel(peer) + 1_000;
            self.after(delay, Event::Deliver(peer));
        }
        Ok(received)
    }

    /// Bytes that were sent, and have not arrived.
    pub(crate) fn unconfirmed(&mut self, fd: Fd) -> Answer<usize> {
        let (_, socket) = self.socket_of(fd)?;
        let (unix, peer, own) = (socket.is_unix(), socket.peer, socket.outbox.len());
        Ok(if unix { peer.and_then(|peer| self.get(peer)).map_or(0, |peer| peer.used()) } else { own })
    }

    // ---- options

    pub(crate) fn set_option(&mut self, fd: Fd, level: i32, name: i32, value: &[u8]) -> Answer {
        if (level, name) == (libc::SOL_SOCKET, SO_PASSRIGHTS) && self.faults.old {
            return Err(libc::ENOPROTOOPT);
        }
        let (_, socket) = self.socket_of(fd)?;
        let number = value.first_chunk::<4>().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => socket.send_buffer = (number.max(1152) as usize) * 2,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => socket.receive_buffer = (number.max(1152) as usize) * 2,
            _ => {}
        }
        socket.options.insert((level, name), value.to_vec());
        Ok(0)
    }

    pub(crate) fn option(&mut self, fd: Fd, level: i32, name: i32) -> Answer<Vec<u8>> {
        let (_, socket) = self.socket_of(fd)?;
        let number = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => std::mem::take(&mut socket.error),
            (libc::SOL_SOCKET, libc::SO_TYPE) => socket.kind,
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => socket.domain,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) if socket.is_unix() => 0,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => (socket.state == State::Listening).into(),
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => socket.send_buffer as i32,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => socket.receive_buffer as i32,
            other => match socket.options.get(&other) {
                Some(value) => return Ok(value.clone()),
                None => 0,
            },
        };
        Ok(number.to_ne_bytes().to_vec())
    }

    pub(crate) fn name(&mut self, fd: Fd, of_peer: bool) -> Answer<Name> {
        let (_, socket) = self.socket_of(fd)?;
        if of_peer && socket.state != State::Connected {
            return Err(libc::ENOTCONN);
        }
        let name = if of_peer { &socket.remote } else { &socket.local };
        let unnamed = if socket.is_unix() { 2 } else { 16 };
        Ok(name.clone().unwrap_or_else(|| {
            let mut name = vec![0; unnamed];
            name[..2].copy_from_slice(&(socket.domain as u16).to_ne_bytes());
            name
        }))
    }
}

/// The address that a connection to `name` comes from: the same, without a port.
fn source_for(name: &[u8]) -> Name {
    let mut local = name.to_vec();
    local[2..4].fill(0);
    local
}
