//! The incoming half of a pipe: it returns the queued messages part by part.

use super::traffic::MessageCounts;
use super::{Delivered, Link, Store, Target};
use crate::error::NoMemory;
use std::collections::VecDeque;
use tautline_proto::frame;
use tautline_queue::message::{Message, Metadata};
use tautline_queue::sync::{Arc, try_lock};
use tautline_queue::{FrameHead, FrameReader};

/// Messages received from a pipe beside its queue. It exists after the first of them.
#[derive(Default)]
pub(super) struct Unqueued {
    pub(super) counts: MessageCounts,
    /// Messages about the peer (ZMQ_DISCONNECT_MSG, ZMQ_HICCUP_MSG), which are received after all
    /// messages from it.
    pub(super) event_messages: VecDeque<Message>,
}

/// State of receiving only.
pub(crate) struct Incoming {
    pub(super) store: Store<FrameReader>,
    /// Properties of the peer that received messages carry, if there are any.
    pub(super) metadata: Option<Arc<Metadata>>,
    pub(super) unqueued: Option<Box<Unqueued>>,
    /// True for one pipe of many: the queue holds no memory while it is empty.
    pub(super) lean: bool,
}

impl Incoming {
    /// True if a whole message can be received, after a look at the queue. If the queue is empty,
    /// notifies a peer that waits for it.
    #[inline(never)]
    pub(super) fn can_recv_now(&mut self, link: &Link) -> bool {
        let reader = match &mut self.store {
            Store::Queue(reader) => reader,
            Store::Slot(slot) => return slot.is_full() || self.has_event_messages(),
        };
        if reader.is_ready() {
            return true;
        }
        match link {
            Link::Wire(connection) => {
                // The credit was given before.
                if connection.paused.is_raised_now()
                    && let Some(set) = connection.io.read_set()
                {
                    set.resume(connection);
                }
                if self.lean {
                    self.release_memory(link);
                }
            }
            // The reader has given credit when it found the queue empty.
            Link::Inproc(end) => end.notify_room(),
        }
        // Messages that were held back at the high-water mark are available at once.
        let is_ready = match &mut self.store {
            Store::Queue(reader) => reader.is_ready(),
            Store::Slot(_) => false,
        };
        is_ready || self.has_event_messages()
    }

    /// True if more messages are known than were received. If it returns false, other messages may
    /// still have arrived.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        matches!(&self.store, Store::Queue(reader) if reader.has_more())
    }

    /// A cheap version of `Pipe::can_recv` for a caller that asks very often and mostly in vain:
    /// true if `Pipe::recv_any` would find a frame. Peers that wait for room or credit are not
    /// handled here but in `can_recv`.
    #[inline]
    pub(crate) fn sees_more(&self) -> bool {
        match &self.store {
            Store::Queue(reader) => reader.has_published_frame(),
            Store::Slot(_) => false,
        }
    }

    /// Returns a number that changes with each message that comes.
    pub(super) fn arrival_count(&self) -> u64 {
        match &self.store {
            Store::Queue(reader) => reader.arrived(),
            Store::Slot(_) => 0,
        }
    }

    /// Returns the head of the next part without consuming it.
    pub(crate) fn head(&mut self) -> Option<FrameHead> {
        let Store::Queue(reader) = &mut self.store else { return None };
        loop {
            let head = reader.head()?;
            if head.flags & frame::COMMAND == 0 {
                return Some(head);
            }
            reader.skip();
        }
    }

    /// Returns the body of the next part without consuming it, in two slices. The second slice is
    /// mostly empty.
    pub(crate) fn peek(&mut self) -> Result<Option<[&[u8]; 2]>, NoMemory> {
        self.head();
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        reader.peek()
    }

    /// Drops the next part if a quick check shows that it is empty and that other parts follow. If
    /// it returns false, the part may still be such a part.
    #[inline]
    pub(crate) fn skip_delimiter(&mut self) -> bool {
        match &mut self.store {
            Store::Queue(reader) => reader.skip_delimiter(),
            Store::Slot(_) => false,
        }
    }

    /// Releases the memory of an empty queue until the next message comes, unless a thread is
    /// reading into it.
    pub(super) fn release_memory(&mut self, link: &Link) {
        if let (Link::Wire(connection), Store::Queue(reader)) = (link, &mut self.store)
            && reader.holds_memory()
            && let Ok(mut intake) = try_lock(&connection.intake)
        {
            intake.release_memory(reader);
        }
    }

    /// True if there are messages about the peer.
    pub(super) fn has_event_messages(&self) -> bool {
        self.unqueued.as_ref().is_some_and(|aside| !aside.event_messages.is_empty())
    }

    /// Receives a message that is not in a queue: the newest message (ZMQ_CONFLATE), or a message
    /// about the peer.
    #[cold]
    pub(super) fn recv_unqueued(&mut self, target: &mut Target<'_>) -> Option<Delivered> {
        let newest = match &self.store {
            Store::Queue(_) => None,
            Store::Slot(slot) => slot.take(),
        };
        let Some((_, mut message)) = newest else {
            return Some(target.put_message(self.unqueued.as_mut()?.event_messages.pop_front()?));
        };
        message.set_more(false);
        self.unqueued.get_or_insert_default().counts.add((1, message.len() as u64));
        if let Some(metadata) = &self.metadata {
            message.set_metadata(Some(metadata.clone()));
        }
        Some(target.put_message(message))
    }

    /// Returns the number of messages from the peer that wait for the owner.
    pub(super) fn queued(&mut self) -> u64 {
        match &mut self.store {
            Store::Queue(reader) => reader.queued(),
            Store::Slot(slot) => slot.is_full().into(),
        }
    }
}
