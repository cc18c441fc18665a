//! Traffic of a pipe, and its waiting messages. The queues have their own counters; this module
//! adds the messages that they do not see.

use super::{Outgoing, Pipe, Store};

/// Traffic of a pipe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) messages_out: u64,
    pub(crate) bytes_out: u64,
    pub(crate) messages_in: u64,
    pub(crate) bytes_in: u64,
}

/// Messages and bytes that the queues do not count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageCounts {
    messages: u64,
    bytes: u64,
    /// Messages dropped because there was no memory for them.
    dropped: u64,
}

impl MessageCounts {
    /// Adds messages and bytes.
    pub(super) fn add(&mut self, (messages, bytes): (u64, u64)) {
        self.messages = self.messages.wrapping_add(messages);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

impl Traffic {
    /// Adds the traffic of another pipe.
    pub(super) fn add(&mut self, other: Traffic) {
        self.messages_out += other.messages_out;
        self.bytes_out += other.bytes_out;
        self.messages_in += other.messages_in;
        self.bytes_in += other.bytes_in;
    }
}

impl Outgoing {
    /// Returns the number of messages that wait for the peer.
    pub(super) fn queued(&self) -> u64 {
        match &self.store {
            Store::Queue(writer) => writer.in_flight() + self.pending_in_log(),
            Store::Slot(slot) => slot.is_full().into(),
        }
    }

    /// Returns the number of messages that were dropped because there was no room or no memory.
    pub(super) fn dropped(&self) -> u64 {
        match &self.store {
            Store::Queue(writer) => writer.dropped(),
            Store::Slot(_) => self.conflated.as_ref().map_or(0, |conflated| conflated.dropped),
        }
    }

    /// Counts one more dropped message.
    pub(super) fn count_dropped(&mut self) {
        match &mut self.store {
            Store::Queue(writer) => writer.count_dropped(1),
            Store::Slot(_) => self.conflated.get_or_insert_default().dropped += 1,
        }
    }
}

impl Pipe {
    /// Returns the number of messages that wait for the peer or have no credit yet, and the number
    /// of messages from it that wait for the owner.
    pub(crate) fn uncredited(&mut self) -> (u64, u64) {
        let queued = self.outgoing.queued();
        let out = match &mut self.outgoing.store {
            Store::Queue(writer) => queued.max(writer.uncredited()),
            Store::Slot(_) => queued,
        };
        (out, self.incoming.queued())
    }

    /// Returns the traffic so far. If there is a queue, bytes are those of whole frames.
    pub(super) fn traffic(&self) -> Traffic {
        let (out, incoming) = (&self.outgoing, &self.incoming);
        let mut sent = out.conflated.as_deref().copied().unwrap_or_default();
        if let Store::Queue(writer) = &out.store {
            sent.add(writer.written());
            sent.add(writer.bypass_counts());
        }
        if let Some(progress) = &out.follows {
            // `FrameWriter::bypass_counts` subtracts the messages from before the pipe followed the
            // log.
            sent.add(progress.published());
        }
        let mut received = incoming.unqueued.as_ref().map_or_else(Default::default, |aside| aside.counts);
        if let Store::Queue(reader) = &incoming.store {
            received.add(reader.read_counts());
        }
        Traffic {
            messages_out: sent.messages,
            bytes_out: sent.bytes,
            messages_in: received.messages,
            bytes_in: received.bytes,
        }
    }
}
