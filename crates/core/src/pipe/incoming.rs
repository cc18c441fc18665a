//! The incoming half of a pipe: it returns the queued messages part by part.

use super::unqueued::Unqueued;
use super::{Delivered, Link, Store, Target};
use crate::error::NoMemory;
use tautline_proto::frame;
use tautline_queue::message::{Message, Metadata};
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::Ordering::SeqCst;
use tautline_queue::sync::atomic::fence;
use tautline_queue::{FrameHead, FrameReader, LatestMessage};

/// State of receiving only.
pub(crate) struct Incoming {
    pub(super) store: Store<FrameReader>,
    /// Properties of the peer that received messages carry, if there are any.
    pub(super) metadata: Option<Arc<Metadata>>,
    /// State that most pipes do not need.
    pub(super) unqueued: Option<Box<Unqueued>>,
    /// True for one pipe of many: the queue holds no memory while it is empty.
    pub(super) lean: bool,
}

impl Incoming {
    /// Returns the half of a pipe over this queue, or slot (ZMQ_CONFLATE).
    pub(super) fn new(store: Result<FrameReader, Arc<LatestMessage>>) -> Self {
        Incoming { store: store.into(), metadata: None, unqueued: None, lean: false }
    }

    /// True if a whole message can be received, after a look at the queue.
    #[inline(never)]
    pub(super) fn can_recv_now(&mut self, link: &Link) -> bool {
        match &mut self.store {
            Store::Queue(reader) => {
                reader.is_ready() || {
                    self.found_empty(link);
                    // Messages that were held back at the high-water mark are available at once.
                    match &mut self.store {
                        Store::Queue(reader) => reader.is_ready() || self.has_event_messages(),
                        Store::Slot(_) => false,
                    }
                }
            }
            Store::Slot(slot) => slot.is_full() || self.has_event_messages(),
        }
    }

    /// True if more messages are known than were received. If it returns false, other messages may
    /// still have arrived.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        matches!(&self.store, Store::Queue(reader) if reader.has_more())
    }

    /// True if all known messages are received.
    pub(super) fn is_drained(&self) -> bool {
        matches!(&self.store, Store::Queue(reader) if !reader.has_more())
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

    /// Receives the next part of the queue and skips commands. Returns `None` if there is no whole
    /// message. If there is no memory for the part, it stays the next one. A buffer target never
    /// needs memory.
    #[inline]
    pub(super) fn recv(&mut self, target: &mut Target<'_>) -> Result<Option<Delivered>, NoMemory> {
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        loop {
            let head = match target {
                Target::Buffer(buffer) => match reader.read_into(buffer) {
                    Some(head) => head,
                    None => return Ok(None),
                },
                Target::Message(message) => {
                    let Some(head) = reader.read_message(message)? else { return Ok(None) };
                    message.replace_metadata(self.metadata.as_ref());
                    head
                }
            };
            if head.flags & frame::COMMAND == 0 {
                return Ok(Some(Delivered { len: head.len, more: head.flags & frame::MORE != 0 }));
            }
        }
    }

    /// See `Pipe::recv_any`.
    pub(super) fn recv_any(
        &mut self,
        link: &Link,
        message: &mut Message,
    ) -> Result<Option<FrameHead>, NoMemory> {
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        let Some(head) = reader.read_message(message)? else {
            if self.lean {
                self.release_memory(link);
            }
            return Ok(None);
        };
        message.replace_metadata(self.metadata.as_ref());
        Ok(Some(head))
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

    /// Drops the parts of the queue up to the last one of a message. Returns false if that part is
    /// not there.
    pub(super) fn skip_message(&mut self) -> bool {
        while let Store::Queue(reader) = &mut self.store
            && let Some(head) = reader.skip()
        {
            if head.flags & (frame::COMMAND | frame::MORE) == 0 {
                return true;
            }
        }
        false
    }

    /// Releases the memory of an empty queue until the next message comes.
    fn release_memory(&mut self, link: &Link) {
        if let (Link::Wire(connection), Store::Queue(reader)) = (link, &mut self.store)
            && reader.holds_memory()
        {
            connection.release_incoming_memory(reader);
        }
    }

    /// Handles an empty queue: notifies a peer that waits for it.
    #[inline(never)]
    fn found_empty(&mut self, link: &Link) {
        match link {
            Link::Wire(connection) => {
                // The credit was given before; now load the note. `Connection::pause_if_full` does
                // it in the opposite order.
                fence(SeqCst);
                if connection.is_paused() {
                    connection.resume();
                }
                if self.lean {
                    self.release_memory(link);
                }
            }
            // The reader has given credit when it found the queue empty.
            Link::Inproc(end) => end.notify_room(),
        }
    }
}
