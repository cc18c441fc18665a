//! A socket that many threads use, as `shared` needs it: operations that do not block, and
//! operations that make events visible to other threads.

use std::time::Instant;

use super::{PollEvents, Socket};
use crate::conn::{News, SocketInbox};
use crate::error::Error;
use crate::pattern::{self, Received};
use crate::pipe::{Part, Target};
use tautline_queue::sync::Arc;

/// Ends the calls on a socket from another thread than its owner's.
pub struct Closer(Arc<SocketInbox>);

impl Closer {
    /// Returns the closer of `socket`.
    pub fn of(socket: &Socket) -> Closer {
        Closer(socket.inbox.clone())
    }

    /// Makes the owner's current call and every later one fail with [`Error::NotSocket`]. Wakes a
    /// blocked call.
    pub fn end_calls(&self) {
        self.0.push(News::Closed);
    }
}

impl std::fmt::Debug for Closer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

impl Socket {
    /// True if several threads may call a socket of this type at once (ZMQ_THREAD_SAFE).
    pub fn is_thread_safe(&self) -> bool {
        pattern::entry(self.socket_type).is_some_and(|entry| entry.thread_safe)
    }

    /// The inbox of the socket.
    pub(crate) fn inbox(&self) -> &Arc<SocketInbox> {
        &self.inbox
    }

    /// Sends if that is possible at once.
    pub(crate) fn try_send(&mut self, part: &mut Part<'_>) -> Result<(), Error> {
        self.check_alive()?;
        let mut result = self.pattern.send(&mut self.pipes, part);
        if result == Err(Error::Again) && self.request_room() {
            result = self.pattern.send(&mut self.pipes, part);
        }
        self.remove_closed_pipes();
        result.map(|_| ())
    }

    /// Processes news, reads the network if needed, and returns the operations that are possible
    /// now. If no peer has room for a wanted send, asks the peers to signal room, because the
    /// caller then waits on a descriptor.
    pub(crate) fn refresh_and_ask(&mut self, wanted: PollEvents) -> Result<PollEvents, Error> {
        let mut can = self.refresh(wanted, true)?;
        can.write = can.write || wanted.write && self.request_room();
        Ok(can)
    }

    /// Receives if that is possible at once. Reads the network.
    pub(crate) fn try_recv(&mut self, target: &mut Target<'_>) -> Result<usize, Error> {
        self.check_alive()?;
        let mut result = self.pattern.recv(&mut self.pipes, target);
        if result == Err(Error::Again) {
            self.read_available()?;
            result = self.pattern.recv(&mut self.pipes, target);
        }
        self.remove_closed_pipes();
        self.detach_ended();
        let Received { len, more, .. } = result?;
        self.receive_more = more;
        Ok(len)
    }

    /// The time until which a blocking receive (or else a send) that begins now may last.
    pub(crate) fn deadline_for(&self, wanted: PollEvents) -> Option<Instant> {
        let options = &self.pipes.options;
        let timeout = if wanted.read { options.receive_timeout } else { options.send_timeout };
        timeout.and_then(|time| Instant::now().checked_add(time))
    }

    /// Returns the operations that are possible now, without reading the network. "Send" means the
    /// message that was refused last. `asks` is true for an owner that leaves while others wait for
    /// room: it asks for room again, because it may have consumed the earlier signal.
    pub(crate) fn possible_events(&mut self, asks: bool) -> PollEvents {
        let Socket { pattern, pipes, .. } = self;
        // A call on a closed socket fails at once.
        if self.over.is_some() || self.inbox.has_pending() {
            return PollEvents { read: true, write: true };
        }
        let (read, write) = (pattern.can_recv(pipes), pattern.can_send_refused(pipes));
        PollEvents { read, write: write || asks && self.request_room() }
    }

    /// Prepares for a time without an owner: all events wake the waiting threads from now on, and
    /// queued messages are sent. Returns true if a wanted operation is possible now, so that no
    /// caller needs to wait.
    pub(crate) fn prepare_sleep(&mut self, wanted: PollEvents) -> Result<bool, Error> {
        self.expose()?;
        self.pipes.flush();
        if wanted.write {
            // Asks inproc peers to signal room.
            self.pipes.full_streams();
        }
        let can = self.possible_events(false);
        Ok(wanted.read && can.read || wanted.write && can.write)
    }

    /// Notes that an owner is back and that no other caller waits.
    pub(crate) fn conceal(&self) {
        self.inbox.conceal();
    }
}
