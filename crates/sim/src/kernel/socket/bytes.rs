//! Bytes in flight: room, readiness, writing, delivering, reading.

use std::collections::VecDeque;

use super::{Chunk, Received, SO_PASSRIGHTS, Socket, SocketState};
use crate::kernel::{Body, Event, Fd, Id, Kernel, SysResult};

impl Kernel {
    pub(super) fn room(&self, socket: &Socket) -> usize {
        if !socket.is_unix() {
            return socket.send_buffer.saturating_sub(socket.outbox.len());
        }
        let peer = socket.peer.and_then(|peer| self.objects.get(&peer)).map(|peer| &peer.body);
        let used = if let Some(Body::Socket(peer)) = peer { peer.used() } else { 0 };
        socket.send_buffer.saturating_sub(used)
    }

    /// Returns the number of bytes that a socket can take.
    pub(crate) fn room_of(&self, fd: Fd) -> SysResult<usize> {
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

    pub(in crate::kernel) fn socket_readiness(&self, socket: &Socket) -> u32 {
        let mut mask = 0;
        if socket.kind == libc::SOCK_DGRAM {
            let readable = if socket.datagrams.is_empty() { 0 } else { libc::EPOLLIN };
            return (libc::EPOLLOUT | readable) as u32;
        }
        if socket.state == SocketState::Listening {
            return if socket.backlog.is_empty() { 0 } else { libc::EPOLLIN as u32 };
        }
        if socket.error != 0 {
            mask |= libc::EPOLLERR;
        }
        let over = match socket.state {
            SocketState::Ended => true,
            SocketState::New => true,
            _ => {
                socket.ended && socket.shut.1 && (socket.is_unix() || socket.end_delivered)
                    || socket.shut == (true, true)
            }
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
            SocketState::Connecting => false,
            _ => socket.shut.1 && !socket.is_unix() || self.is_writable(socket),
        };
        if can_write {
            mask |= libc::EPOLLOUT;
        }
        mask as u32
    }

    pub(crate) fn send(&mut self, fd: Fd, bytes: &[u8], rights: &[Fd]) -> SysResult<usize> {
        let mut enclosed = Vec::new();
        for right in rights {
            enclosed.push(self.id(*right)?);
        }
        let (id, socket) = self.socket_of(fd)?;
        if socket.error != 0 && !socket.is_unix() {
            return Err(std::mem::take(&mut socket.error));
        }
        match socket.state {
            SocketState::Connecting => return Err(libc::EAGAIN),
            SocketState::New | SocketState::Listening => {
                return Err(if socket.is_unix() { libc::ENOTCONN } else { libc::EPIPE });
            }
            SocketState::Ended => return Err(libc::EPIPE),
            SocketState::Connected if socket.shut.1 => return Err(libc::EPIPE),
            SocketState::Connected => {}
        }
        let (unix, peer) = (socket.is_unix(), socket.peer);
        let Some(Body::Socket(socket)) = self.objects.get(&id).map(|object| &object.body) else {
            return Err(libc::EBADF);
        };
        let room = self.room(socket);
        let (again, partial) = (self.faults.again, self.faults.partial);
        // An empty Unix-domain socket always takes some bytes.
        let may_refuse = !unix || room < socket.send_buffer;
        if room == 0 || may_refuse && self.draw_fault(again) {
            return Err(libc::EAGAIN);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let mut n = bytes.len().min(room);
        if self.draw_fault(partial) {
            n = self.rng.between(1, n as u64) as usize;
        }
        self.changes += 1;
        if !unix {
            self.must(id).outbox.extend(&bytes[..n]);
            self.start_delivery(id);
            return Ok(n);
        }
        let Some(peer) = peer.filter(|peer| self.objects.contains_key(peer)) else { return Err(libc::EPIPE) };
        let admits =
            self.must(peer).options.get(&(libc::SOL_SOCKET, SO_PASSRIGHTS)).is_none_or(|value| value[0] != 0);
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

    /// Schedules the delivery of the outbox, or of the end of stream.
    pub(super) fn start_delivery(&mut self, id: Id) {
        let Some(socket) = self.get(id).filter(|socket| !socket.delivering) else { return };
        socket.delivering = true;
        match self.travel(id) {
            0 => self.deliver(id),
            delay => self.schedule_after(delay, Event::Deliver(id)),
        }
    }

    /// Moves bytes of `id` to its peer.
    pub(in crate::kernel) fn deliver(&mut self, id: Id) {
        let Some(socket) = self.get(id) else { return };
        socket.delivering = false;
        let (peer, unsent) = (socket.peer, socket.outbox.len());
        let reset = self.faults.reset;
        if self.faults.resets > 0 && self.draw_fault(reset) {
            self.faults.resets -= 1;
            self.reset(id, libc::ECONNRESET);
            if let Some(peer) = peer {
                self.reset(peer, libc::ECONNRESET);
            }
            return;
        }
        let there = peer
            .and_then(|peer| self.get(peer))
            .filter(|there| !there.closed && there.state != SocketState::Ended);
        let Some(there) = there else {
            // The peer is closed: data is answered with a reset, an end of stream is not.
            if unsent > 0 {
                let delay = self.travel(id);
                return self.schedule_after(delay, Event::Reset(id, libc::ECONNRESET));
            }
            self.must(id).end_delivered = true;
            return self.remove_closed(id);
        };
        let window = there.receive_buffer.saturating_sub(there.inbox_bytes);
        let mut n = unsent.min(window);
        if n < unsent && n == 0 {
            // The reader restarts the delivery.
            return;
        }
        let partial = self.faults.partial;
        if n > 1 && self.draw_fault(partial) {
            n = self.rng.between(1, n as u64) as usize;
        }
        let socket = self.must(id);
        let bytes: VecDeque<u8> = socket.outbox.drain(..n).collect();
        if socket.outbox.is_empty() {
            // Shrinks, because held memory is counted.
            socket.outbox.shrink_to(4096);
        }
        let rest = socket.outbox.len();
        let ends = rest == 0 && socket.shut.1 && !socket.end_delivered;
        socket.end_delivered = socket.end_delivered || ends;
        if let Some(there) = peer.and_then(|peer| self.get(peer)) {
            if n > 0 && there.shut == (true, true) {
                // Linux answers with a reset, and is reset itself.
                let delay = self.travel(id);
                self.schedule_after(delay, Event::Reset(id, libc::ECONNRESET));
                return self.reset(peer.unwrap_or(id), libc::ECONNRESET);
            }
            if n > 0 {
                there.inbox_bytes += n;
                there.inbox.push_back(Chunk { bytes, rights: Vec::new() });
            }
            there.ended = there.ended || ends;
            there.done = there.done || ends;
        }
        self.changes += 1;
        if rest > 0 {
            self.must(id).delivering = true;
            let pause = self.travel(id) / 8 + 1_000;
            self.schedule_after(pause, Event::Deliver(id));
        }
        if ends {
            self.remove_closed(id);
        }
    }

    /// Frees a closed socket after its end of stream was delivered.
    pub(super) fn remove_closed(&mut self, id: Id) {
        if self.get(id).is_some_and(|socket| socket.closed) {
            self.objects.remove(&id);
        }
    }

    pub(crate) fn receive(
        &mut self,
        fd: Fd,
        into: &mut dyn FnMut(&[u8]),
        most: usize,
        peek: bool,
    ) -> SysResult<Received> {
        let partial = self.faults.partial;
        let short = self.draw_fault(partial);
        let cut = self.rng.between(1, most.max(1) as u64) as usize;
        let (_, socket) = self.socket_of(fd)?;
        match socket.state {
            SocketState::New | SocketState::Listening => {
                return Err(if socket.is_unix() { libc::EINVAL } else { libc::ENOTCONN });
            }
            SocketState::Connecting => return Err(libc::EAGAIN),
            SocketState::Connected | SocketState::Ended => {}
        }
        if socket.inbox_bytes == 0 {
            if socket.error != 0 && !socket.done {
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
        // There is room again for the peer's unsent bytes.
        if let Some(peer) = peer.filter(|_| !unix)
            && self.get(peer).is_some_and(|there| !there.outbox.is_empty() && !there.delivering)
        {
            self.must(peer).delivering = true;
            let delay = self.travel(peer) + 1_000;
            self.schedule_after(delay, Event::Deliver(peer));
        }
        Ok(received)
    }

    /// True if all sent bytes have arrived at their readers.
    pub(crate) fn is_all_delivered(&self) -> bool {
        let mut sockets = self.objects.values().filter_map(|object| match &object.body {
            Body::Socket(socket) => Some(socket),
            _ => None,
        });
        sockets.all(|socket| socket.outbox.is_empty())
    }

    /// Returns the number of sent bytes that have not arrived.
    pub(crate) fn unconfirmed(&mut self, fd: Fd) -> SysResult<usize> {
        let (_, socket) = self.socket_of(fd)?;
        let (unix, peer, own) = (socket.is_unix(), socket.peer, socket.outbox.len());
        Ok(if unix { peer.and_then(|peer| self.get(peer)).map_or(0, |peer| peer.used()) } else { own })
    }
}
