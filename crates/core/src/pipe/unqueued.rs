//! State of a pipe beside its queues. Most pipes do not need it.

use super::{Delivered, Incoming, Peer, Store, Target};
use std::collections::VecDeque;
use tautline_queue::message::Message;

/// Messages and bytes that the queues do not count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageCounts {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Messages dropped because there was no memory for them.
    pub(super) dropped: u64,
}

impl MessageCounts {
    /// Adds messages and bytes.
    pub(super) fn add(&mut self, (messages, bytes): (u64, u64)) {
        self.messages = self.messages.wrapping_add(messages);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// Messages received from a pipe beside its queue.
#[derive(Default)]
pub(super) struct Unqueued {
    pub(super) counts: MessageCounts,
    /// Messages about the peer (ZMQ_DISCONNECT_MSG, ZMQ_HICCUP_MSG), which are received after all
    /// messages from it.
    event_messages: VecDeque<Message>,
}

impl Incoming {
    /// Adds a message about the peer, which is received after all messages that the peer has sent.
    /// Returns false if there is no memory for it.
    pub(super) fn queue_event_message(&mut self, body: &[u8]) -> bool {
        let Some(mut message) = Message::try_from_slice(body) else { return false };
        message.set_metadata(self.metadata.clone());
        self.unqueued.get_or_insert_default().event_messages.push_back(message);
        true
    }

    /// True if there are messages about the peer.
    pub(super) fn has_event_messages(&self) -> bool {
        self.unqueued.as_ref().is_some_and(|aside| !aside.event_messages.is_empty())
    }

    /// Receives a message that is not in a queue: the newest message (ZMQ_CONFLATE), or a message
    /// about the peer.
    #[cold]
    pub(super) fn recv_unqueued(&mut self, peer: &Peer, target: &mut Target<'_>) -> Option<Delivered> {
        let newest = match &self.store {
            Store::Queue(_) => None,
            Store::Slot(slot) => slot.take(),
        };
        let Some((_, mut message)) = newest else {
            return Some(target.put_message(self.unqueued.as_mut()?.event_messages.pop_front()?));
        };
        message.set_more(false);
        self.unqueued.get_or_insert_default().counts.add((1, message.len() as u64));
        if let Some(metadata) = peer.metadata() {
            message.set_metadata(Some(metadata));
        }
        Some(target.put_message(message))
    }
}
