//! Traffic of a pipe, and its waiting messages. The queues have their own counters; this module
//! adds the messages that they do not see, and the counters that all pipes of a socket share.

use super::discards::Discards;
use super::{Outgoing, Pipe, PipeId, Store};
use crate::error::Error;
use tautline_queue::sync::Mutex;
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;

/// State shared by all pipes of a socket: the lists of pipes with deferred work, and common
/// counters.
#[derive(Debug, Default)]
pub(crate) struct PipesShared {
    /// Pipes with bytes that the flush rule has left queued.
    pub(in crate::pipe) unflushed: Mutex<Vec<PipeId>>,
    /// Pipes that were left to the sweep. After the sweep, their queues release their memory.
    pub(in crate::pipe) unreleased: Mutex<Vec<PipeId>>,
    /// Number of messages without a peer for their routing id.
    // Relaxed: own, the owner's; a number to others.
    unroutable: AtomicU64,
    /// Number of calls that were refused because they were out of turn (EFSM).
    // Relaxed: own, the owner's; a number to others.
    out_of_turn: AtomicU64,
    /// Number of subscriptions and messages with a topic that their peer may not use.
    // Relaxed: own, the owner's; a number to others.
    topics_refused: AtomicU64,
    /// Messages and peers that the socket turned away.
    pub(crate) discards: Discards,
}

impl PipesShared {
    /// Returns the number of messages without a peer for their routing id.
    pub(crate) fn unroutable(&self) -> u64 {
        self.unroutable.load(Relaxed)
    }

    /// Called by the owner: counts one more message without a peer, and records its routing id.
    #[cold]
    pub(crate) fn count_unroutable(&self, name: &[u8]) {
        self.unroutable.store(self.unroutable() + 1, Relaxed);
        self.discards.note_unroutable(name);
    }

    /// Returns the number of subscriptions and messages with a topic that their peer may not use.
    pub(crate) fn topics_refused(&self) -> u64 {
        self.topics_refused.load(Relaxed)
    }

    /// Called by the owner: counts one more subscription or message that a peer was not allowed.
    pub(crate) fn count_topic_refused(&self) {
        self.topics_refused.store(self.topics_refused() + 1, Relaxed);
    }

    /// Returns the number of calls that were refused because it was not their turn.
    pub(crate) fn out_of_turn(&self) -> u64 {
        self.out_of_turn.load(Relaxed)
    }

    /// Called by the owner: counts one more refused call, and returns its error.
    #[cold]
    pub(crate) fn refuse_out_of_turn(&self) -> Error {
        self.out_of_turn.store(self.out_of_turn() + 1, Relaxed);
        Error::State
    }
}

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
