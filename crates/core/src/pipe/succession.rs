//! How a peer that has the place of another one makes room: what it has sent before counts, and so
//! does its end, though neither may have been read yet.

use super::{Pipe, PipeId, Pipes};
use std::ops::ControlFlow;

/// The peer is read this often, 64 KiB at a time. That is 8 MiB, more than Linux keeps for one
/// stream by default; a peer that sends faster than it is read must not hold up the socket.
const READS: usize = 128;

impl Pipes {
    /// Whether the peer of this pipe has gone, which may not have been read yet.
    pub(crate) fn has_gone(&mut self, id: PipeId) -> bool {
        let _ = (0..READS).find(|_| !self.read_now(id));
        self.get(id).is_none_or(|pipe| pipe.has_ended())
    }

    /// Has `take` take all that the peer of this pipe has sent by now, also what was not announced
    /// yet, and what lies behind the high-water mark: one message in each call, which answers
    /// whether there was one. Whether the peer has gone: then the pipe has ended.
    pub(crate) fn drain(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let connection = self.get(id).and_then(|pipe| pipe.connection()).cloned();
        if let Some(connection) = &connection {
            connection.set_receive_limit(0);
        }
        let _ = (0..READS).find(|_| !(self.take_all(id, &mut take) || self.read_now(id)));
        // What the I/O thread has read between the last two of these steps.
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

    /// Has what is there taken. Whether there is more by then.
    fn take_all(&mut self, id: PipeId, mut take: impl FnMut(&mut Pipe) -> bool) -> bool {
        let Some(pipe) = self.get(id) else { return false };
        // Of a peer that goes on sending, only what is there now.
        let whole = if pipe.has_ended() { u64::MAX } else { pipe.incoming.queued() };
        (0..whole).all(|_| take(pipe)) && pipe.can_recv()
    }

    /// Reads once what the peer of this pipe has sent by now. A pipe whose peer is found to have
    /// gone ends. Whether anything came.
    fn read_now(&mut self, id: PipeId) -> bool {
        let Some(pipe) = self.get(id).filter(|pipe| !pipe.outgoing.ended) else { return false };
        let Some(connection) = pipe.connection().cloned() else { return false };
        match connection.read_now() {
            ControlFlow::Continue(came) => came,
            ControlFlow::Break(()) => {
                // A peer that this socket has connected to may come back.
                if !pipe.peer.connected_here {
                    self.end(id);
                }
                true
            }
        }
    }

    /// The peer is gone. What was received stays readable, and behind it comes ZMQ_DISCONNECT_MSG,
    /// unless this socket has connected to the peer.
    pub(super) fn end(&mut self, id: PipeId) {
        let Some(pipe) = self.slots.get(id) else { return };
        if pipe.outgoing.ended {
            return;
        }
        pipe.end();
        let farewell = self.options.farewell();
        if !farewell.is_empty() && !pipe.peer.connected_here {
            pipe.note(farewell);
        }
    }
}
