//! Ends of connections: orderly, by a reset, or half-closed.

use super::{SocketState, inet, path};
use crate::kernel::{Event, Fd, Id, Kernel, SysResult};

/// Nanoseconds for which a port stays in use after an orderly end.
const TIME_WAIT: u64 = 60_000_000_000;

impl Kernel {
    /// Closes a socket after its last descriptor.
    pub(in crate::kernel) fn close_socket(&mut self, id: Id) {
        let socket = self.must(id);
        let (state, unix, unread) = (socket.state, socket.is_unix(), socket.inbox_bytes > 0);
        socket.closed = true;
        socket.shut = (true, true);
        let both_ended = socket.ended && socket.end_delivered;
        let local = socket.local.clone();
        let peer = socket.peer;
        let aborts = !unix
            && socket.options.get(&(libc::SOL_SOCKET, libc::SO_LINGER)).is_some_and(|linger| {
                linger.first_chunk::<8>().is_some_and(|linger| linger[0] != 0 && linger[4..] == [0; 4])
            });
        let rights: Vec<Id> = socket.inbox.drain(..).flat_map(|chunk| chunk.rights).collect();
        let waiting = std::mem::take(&mut socket.backlog);
        for id in rights {
            self.release(id);
        }
        for id in waiting {
            // The connection was not accepted, so its peer gets a reset.
            let peer = self.get(id).and_then(|socket| socket.peer);
            if let Some(peer) = peer {
                let delay = self.travel(peer);
                self.schedule_after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            self.objects.remove(&id);
        }
        if state == SocketState::Listening {
            if let Some((_, open)) =
                local.as_deref().and_then(path).and_then(|path| self.paths.get_mut(&path))
                && *open == Some(id)
            {
                *open = None;
            }
            self.paths.retain(|path, (_, open)| path[0] != 0 || open.is_some());
        }
        match (state, peer) {
            (SocketState::Connected, Some(peer)) if peer == id => {
                if let Some((_, port)) = local.as_deref().and_then(inet).filter(|_| !aborts) {
                    self.waiting_ports.insert(port, self.now + TIME_WAIT);
                }
                self.objects.remove(&id);
            }
            (SocketState::Connected, Some(peer)) if unix => {
                if let Some(peer) = self.get(peer) {
                    peer.shut = (true, true);
                    peer.ended = true;
                    peer.state = SocketState::Ended;
                    if unread {
                        peer.error = libc::ECONNRESET;
                    }
                }
                self.objects.remove(&id);
            }
            (SocketState::Connected, Some(_)) if both_ended => drop(self.objects.remove(&id)),
            (SocketState::Connected, Some(peer)) if unread || aborts => {
                let delay = self.travel(id);
                self.objects.remove(&id);
                self.schedule_after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            (SocketState::Connected, Some(_)) => self.start_delivery(id),
            (SocketState::Connecting, Some(peer)) => {
                let delay = self.travel(id);
                self.objects.remove(&id);
                self.schedule_after(delay, Event::Reset(peer, libc::ECONNRESET));
            }
            _ => drop(self.objects.remove(&id)),
        }
    }

    /// Handles an arriving reset or refusal.
    pub(in crate::kernel) fn reset(&mut self, id: Id, error: i32) {
        let Some(socket) = self.get(id) else { return };
        if socket.closed {
            self.objects.remove(&id);
            return;
        }
        if socket.state == SocketState::Ended {
            return;
        }
        // Same errors as in tcp_reset of Linux.
        let after_the_end = socket.ended && error == libc::ECONNRESET;
        socket.error = if after_the_end { libc::EPIPE } else { error };
        socket.state = SocketState::Ended;
        socket.shut = (true, true);
        socket.ended = true;
        socket.outbox.clear();
        self.changes += 1;
    }

    pub(crate) fn shutdown(&mut self, fd: Fd, how: i32) -> SysResult {
        let (id, socket) = self.socket_of(fd)?;
        let both_ended = socket.ended && socket.end_delivered;
        if (socket.state != SocketState::Connected || both_ended) && !socket.is_unix() {
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
}
