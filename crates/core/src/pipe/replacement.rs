//! Replaces a peer. Messages that the old peer has sent still count, and so does the end of its
//! connection, even if this process has not read them yet.

use super::{Pipe, PipeId, Pipes};
use std::ops::ControlFlow;
use tautline_queue::sync::lock;

/// Limit for the reads from the peer, 64 KiB each. That is 8 MiB, more than Linux keeps for one
/// stream by default. A peer that sends faster than we read must not block the socket.
const MAX_READS: usize = 128;

impl Pipes {
    /// Returns true if the peer of this pipe is gone. Reads its stream first, because its end may
    /// not have been read yet.
    pub(crate) fn check_closed(&mut self, id: PipeId) -> bool {
        let _ = (0..MAX_READS).find(|_| !self.read_now(id));
        self.get(id).is_none_or(|pipe| pipe.has_ended())
    }

    /// Takes everything that the peer of this pipe has sent so far, including unread bytes and
    /// messages beyond the high-water mark. Each call of `take` takes one message, and returns
    /// false if there was none. Returns true if the peer is gone; then this call has ended the
    /// pipe.
    pub(crate) fn drain(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let connection = self.get(id).and_then(|pipe| pipe.connection()).cloned();
        if let Some(connection) = &connection {
            lock(&connection.intake).set_limit(0);
        }
        let _ = (0..MAX_READS).find(|_| !(self.take_all(id, &mut take) || self.read_now(id)));
        // Takes the messages that the I/O thread read after the last `take_all` above.
        self.take_all(id, &mut take);
        if let Some(connection) = connection {
            lock(&connection.intake).set_limit(self.options.receive_hwm);
        }
        let gone = self.get(id).is_some_and(|pipe| pipe.has_ended());
        if gone {
            self.end(id);
            self.take_all(id, &mut take);
        }
        gone
    }

    /// Takes all messages that are queued at the start. Returns true if more have arrived
    /// meanwhile.
    fn take_all(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let Some(pipe) = self.get(id) else { return false };
        // A peer that has not ended may send without pause: so take only the messages that are
        // queued now. After its end, take all of them.
        let whole = if pipe.has_ended() { u64::MAX } else { pipe.incoming.queued() };
        (0..whole).all(|_| take(pipe)) && pipe.can_recv()
    }

    /// Reads once from the connection of this pipe. If the peer is gone, ends the pipe, unless this
    /// socket has connected to the peer. Returns true if bytes came or the peer is gone.
    fn read_now(&mut self, id: PipeId) -> bool {
        let Some(pipe) = self.get(id).filter(|pipe| !pipe.outgoing.ended) else { return false };
        let Some(connection) = pipe.connection().cloned() else { return false };
        let Some(set) = connection.io.read_set() else { return false };
        // Also reads beyond the high-water mark if the peer sends no further bytes.
        match set.read_one(&connection) {
            ControlFlow::Continue(came) => came,
            ControlFlow::Break(()) => {
                // A peer that this socket has connected to may reconnect.
                if !pipe.peer.connected_here {
                    self.end(id);
                }
                true
            }
        }
    }

    /// Ends a pipe whose peer is gone. Received messages stay readable. ZMQ_DISCONNECT_MSG follows
    /// them, unless this socket has connected to the peer.
    pub(super) fn end(&mut self, id: PipeId) {
        let Some(Some(pipe)) = self.slots.get_mut(id.0 as usize) else { return };
        if pipe.outgoing.ended {
            return;
        }
        pipe.outgoing.ended = true;
        pipe.outgoing.rollback();
        let farewell = self.options.effective_disconnect_msg();
        if !farewell.is_empty() && !pipe.peer.connected_here {
            pipe.queue_event_message(farewell);
        }
    }
}
