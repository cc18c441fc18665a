//! Replacing a peer: the messages that the old peer has sent count, and its end counts, even if
//! they have not been read yet.

use super::{Pipe, PipeId, Pipes};
use std::ops::ControlFlow;

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

    /// Takes everything that the peer of this pipe has sent so far, including messages that were
    /// not announced yet or lie beyond the high-water mark. `take` takes one message in each call
    /// and returns true if there was one. Returns true if the peer is gone; the pipe has then
    /// ended.
    pub(crate) fn drain(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let connection = self.get(id).and_then(|pipe| pipe.connection()).cloned();
        if let Some(connection) = &connection {
            connection.set_receive_limit(0);
        }
        let _ = (0..MAX_READS).find(|_| !(self.take_all(id, &mut take) || self.read_now(id)));
        // Messages that the I/O thread has read between the last two of these steps.
        self.take_all(id, &mut take);
        if let Some(connection) = connection {
            connection.set_receive_limit(self.options.receive_hwm);
        }
        let gone = self.get(id).is_some_and(|pipe| pipe.has_ended());
        if gone {
            self.end(id);
            self.take_all(id, &mut take);
        }
        gone
    }

    /// Takes all available messages. Returns true if there are more by then.
    fn take_all(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let Some(pipe) = self.get(id) else { return false };
        // If the peer continues to send, take only the messages that are there now.
        let whole = if pipe.has_ended() { u64::MAX } else { pipe.incoming.queued() };
        (0..whole).all(|_| take(pipe)) && pipe.can_recv()
    }

    /// Reads the bytes that the peer of this pipe has sent so far, once. Ends a pipe whose peer is
    /// gone. Returns true if bytes came.
    fn read_now(&mut self, id: PipeId) -> bool {
        let Some(pipe) = self.get(id).filter(|pipe| !pipe.outgoing.ended) else { return false };
        let Some(connection) = pipe.connection().cloned() else { return false };
        match connection.read_now() {
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
        let Some(pipe) = self.slots.get(id) else { return };
        if pipe.outgoing.ended {
            return;
        }
        pipe.end();
        let farewell = self.options.effective_disconnect_msg();
        if !farewell.is_empty() && !pipe.peer.connected_here {
            pipe.queue_event_message(farewell);
        }
    }
}
