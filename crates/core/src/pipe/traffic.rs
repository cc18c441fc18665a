//! What has gone through a pipe, and what waits in it. The queues count anyway; here is what they
//! do not see.

use super::{Incoming, Outgoing, Pipe};

/// What has gone through a pipe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) messages_out: u64,
    pub(crate) bytes_out: u64,
    pub(crate) messages_in: u64,
    pub(crate) bytes_in: u64,
}

impl Traffic {
    /// Adds that of another pipe.
    pub(super) fn add(&mut self, other: Traffic) {
        self.messages_out += other.messages_out;
        self.bytes_out += other.bytes_out;
        self.messages_in += other.messages_in;
        self.bytes_in += other.bytes_in;
    }
}

impl Pipe {
    /// How many messages wait for the peer, and how many from it wait for the owner.
    pub(crate) fn queued(&mut self) -> (u64, u64) {
        let outgoing = match &self.outgoing {
            Outgoing::Queue(writer) => {
                writer.in_flight() + self.follows.as_ref().map_or(0, |progress| progress.behind())
            }
            Outgoing::Slot(slot) => slot.is_full().into(),
        };
        let incoming = match &mut self.incoming {
            Incoming::Queue(reader) => reader.queued(),
            Incoming::Slot(slot) => slot.is_full().into(),
        };
        (outgoing, incoming)
    }

    /// As `queued`; of what waits for the peer, what there is no credit for.
    pub(crate) fn uncredited(&mut self) -> (u64, u64) {
        let (outgoing, incoming) = self.queued();
        match &mut self.outgoing {
            Outgoing::Queue(writer) => (outgoing.max(writer.uncredited()), incoming),
            Outgoing::Slot(_) => (outgoing, incoming),
        }
    }

    /// What has gone through it so far; bytes are those of whole frames where there is a queue.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut traffic = self.aside.as_ref().map_or_else(Traffic::default, |aside| aside.uncounted);
        if let Outgoing::Queue(writer) = &self.outgoing {
            let (messages, bytes) = writer.written();
            traffic.messages_out = traffic.messages_out.wrapping_add(messages);
            traffic.bytes_out = traffic.bytes_out.wrapping_add(bytes);
        }
        if let Some(progress) = &self.follows {
            // What was there before it followed is taken off in `uncounted`.
            let (messages, bytes) = progress.published();
            traffic.messages_out = traffic.messages_out.wrapping_add(messages);
            traffic.bytes_out = traffic.bytes_out.wrapping_add(bytes);
        }
        if let Incoming::Queue(reader) = &self.incoming {
            let (messages, bytes) = reader.read();
            traffic.messages_in += messages;
            traffic.bytes_in += bytes;
        }
        traffic
    }

    /// Messages that were dropped for want of room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
