//! The incoming half of a pipe: what is queued there, part by part.

use super::aside::Aside;
use super::{Link, Received, Store, Target};
use crate::error::NoMemory;
use crate::message::{Message, Metadata};
use crate::queue::{FrameReader, Head, Slot};
use crate::sync::Arc;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::fence;
use tautline_proto::frame;

/// What only receiving needs.
pub(super) struct Incoming {
    pub(super) store: Store<FrameReader>,
    /// What received messages are told of the peer, if there is anything.
    pub(super) described: Option<Arc<Metadata>>,
    /// What most pipes have nothing of.
    pub(super) aside: Option<Box<Aside>>,
    /// One of many: the queue holds no memory while it is empty.
    lean: bool,
}

impl Incoming {
    /// The half of a pipe over this queue, or slot (ZMQ_CONFLATE).
    pub(super) fn new(store: Result<FrameReader, Arc<Slot>>) -> Self {
        Incoming { store: store.into(), described: None, aside: None, lean: false }
    }

    /// Whether a whole message can be received, after a look at the queue.
    #[inline(always)]
    pub(super) fn can_recv_now(&mut self, link: &Link) -> bool {
        match &mut self.store {
            Store::Queue(reader) => {
                reader.ready() || {
                    self.found_empty(link);
                    // What was held back at the high-water mark is there at once.
                    match &mut self.store {
                        Store::Queue(reader) => reader.ready() || self.has_notes(),
                        Store::Slot(_) => false,
                    }
                }
            }
            Store::Slot(slot) => slot.is_full() || self.has_notes(),
        }
    }

    /// Whether more of what was seen last is there; `false` says nothing.
    #[inline(always)]
    pub(super) fn has_more(&self) -> bool {
        matches!(&self.store, Store::Queue(reader) if reader.has_more())
    }

    /// Whether nothing is there but what was received already, as far as was seen.
    pub(super) fn is_read(&self) -> bool {
        matches!(&self.store, Store::Queue(reader) if !reader.has_more())
    }

    /// As `Pipe::sees_more`.
    #[inline]
    pub(super) fn sees_more(&self) -> bool {
        match &self.store {
            Store::Queue(reader) => reader.sees_more(),
            Store::Slot(_) => false,
        }
    }

    /// As `Pipe::is_silent`.
    #[inline]
    pub(super) fn is_silent(&self, link: &Link) -> bool {
        match (&self.store, link) {
            (Store::Queue(reader), Link::Wire(connection)) => {
                !reader.sees_more() && !connection.is_paused() && !self.has_notes()
            }
            _ => false,
        }
    }

    /// A number that changes with each message that comes.
    pub(super) fn arrived(&self) -> u64 {
        match &self.store {
            Store::Queue(reader) => reader.arrived(),
            Store::Slot(_) => 0,
        }
    }

    /// As `Pipe::recv_last`, into the caller's buffer; its length.
    #[inline(always)]
    pub(super) fn recv_last_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let Store::Queue(reader) = &mut self.store else { return None };
        reader.read_last_into(buffer)
    }

    /// The same as a message.
    #[inline(always)]
    pub(super) fn recv_last_message(&mut self, message: &mut Message) -> Option<usize> {
        let Store::Queue(reader) = &mut self.store else { return None };
        let len = reader.read_last(message)?;
        message.describe(self.described.as_ref());
        Some(len)
    }

    /// Receives the next part of the queue, passing over commands; `None` if no whole message is
    /// there. Without memory for it, it stays the next one; into a buffer there always is.
    #[inline]
    pub(super) fn recv(&mut self, target: &mut Target<'_>) -> Result<Option<Received>, NoMemory> {
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        loop {
            let head = match target {
                Target::Buffer(buffer) => match reader.read_into(buffer) {
                    Some(head) => head,
                    None => return Ok(None),
                },
                Target::Message(message) => {
                    let Some(head) = reader.read_message(message)? else { return Ok(None) };
                    message.describe(self.described.as_ref());
                    head
                }
            };
            if head.flags & frame::COMMAND == 0 {
                return Ok(Some(Received { len: head.len, more: head.flags & frame::MORE != 0 }));
            }
        }
    }

    /// As `Pipe::recv_any`.
    pub(super) fn recv_any(&mut self, link: &Link, message: &mut Message) -> Result<Option<Head>, NoMemory> {
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        let Some(head) = reader.read_message(message)? else {
            if self.lean {
                self.rest(link);
            }
            return Ok(None);
        };
        message.describe(self.described.as_ref());
        Ok(Some(head))
    }

    /// As `Pipe::head`.
    pub(super) fn head(&mut self) -> Option<Head> {
        let Store::Queue(reader) = &mut self.store else { return None };
        loop {
            let head = reader.head()?;
            if head.flags & frame::COMMAND == 0 {
                return Some(head);
            }
            reader.skip();
        }
    }

    /// As `Pipe::peek`.
    pub(super) fn peek(&mut self) -> Result<Option<[&[u8]; 2]>, NoMemory> {
        self.head();
        let Store::Queue(reader) = &mut self.store else { return Ok(None) };
        reader.peek()
    }

    /// As `Pipe::skip_delimiter`.
    #[inline]
    pub(super) fn skip_delimiter(&mut self) -> bool {
        match &mut self.store {
            Store::Queue(reader) => reader.skip_delimiter(),
            Store::Slot(_) => false,
        }
    }

    /// Drops the parts of the queue up to the last one of a message; false if that is not there.
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

    /// An inproc pipe is attached to a socket with this ZMQ_RCVHWM.
    pub(super) fn set_credit(&mut self, receive_hwm: u32) {
        // The peer's limit is at least ours; with half of that it never waits for credit that is
        // due.
        if let Store::Queue(reader) = &mut self.store {
            reader.set_credit_every(receive_hwm);
        }
    }

    /// One of many from now on.
    pub(super) fn set_lean(&mut self) {
        self.lean = true;
    }

    /// The inproc peer waits until at most `most` messages are queued.
    pub(super) fn make_room_for_peer(&mut self, link: &Link, most: u32) {
        let (Link::Inproc(end), Store::Queue(reader)) = (link, &mut self.store) else { return };
        if reader.queued() <= u64::from(most) {
            reader.credit();
            end.give_room();
        }
    }

    /// Nothing to read: the queue holds no memory until something comes.
    fn rest(&mut self, link: &Link) {
        if let (Link::Wire(connection), Store::Queue(reader)) = (link, &mut self.store)
            && reader.holds_memory()
        {
            connection.rest_incoming(reader);
        }
    }

    /// Nothing to read: a peer that waits for this is told.
    #[inline(never)]
    fn found_empty(&mut self, link: &Link) {
        match link {
            Link::Wire(connection) => {
                // Gave credit, now looks for the note: the other way round in
                // `Connection::pause_if_full`.
                fence(SeqCst);
                if connection.is_paused() {
                    connection.resume();
                }
                if self.lean {
                    self.rest(link);
                }
            }
            // The reader has given credit when it found nothing.
            Link::Inproc(end) => end.give_room(),
        }
    }
}
