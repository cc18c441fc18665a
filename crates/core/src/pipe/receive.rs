//! Receiving from a pipe: what is queued, part by part.

use super::{Incoming, Link, Pipe, Received, Target};
use crate::error::NoMemory;
use crate::message::Message;
use crate::queue::Head;
use tautline_proto::frame;

impl Pipe {
    /// Whether a whole message can be received.
    #[inline(always)]
    pub(crate) fn can_recv(&mut self) -> bool {
        matches!(&self.incoming, Incoming::Queue(reader) if reader.has_more()) || self.can_recv_now()
    }

    #[inline(never)]
    fn can_recv_now(&mut self) -> bool {
        match &mut self.incoming {
            Incoming::Queue(reader) => {
                reader.ready() || {
                    self.found_empty();
                    // What was held back at the high-water mark is there at once.
                    match &mut self.incoming {
                        Incoming::Queue(reader) => reader.ready() || self.has_notes(),
                        Incoming::Slot(_) => false,
                    }
                }
            }
            Incoming::Slot(slot) => slot.is_full() || self.has_notes(),
        }
    }

    /// Whether `recv_any` would find something, as cheaply as can be, for a caller that asks again
    /// and again and mostly in vain. Peers that wait for room or credit are not heard here but by
    /// `can_recv`.
    #[inline]
    pub(crate) fn sees_more(&self) -> bool {
        match &self.incoming {
            Incoming::Queue(reader) => reader.sees_more(),
            Incoming::Slot(_) => false,
        }
    }

    /// Receives the next part if it is the last of its message and known to be there; `None` says
    /// nothing about whether `recv` finds one.
    #[inline(always)]
    pub(crate) fn recv_last(&mut self, target: &mut Target<'_>) -> Option<Received> {
        let len = match target {
            Target::Buffer(buffer) => self.recv_last_into(buffer)?,
            Target::Message(message) => self.recv_last_message(message)?,
        };
        Some(Received { len, more: false })
    }

    /// A number that changes with each message that comes.
    pub(super) fn arrived(&self) -> u64 {
        match &self.incoming {
            Incoming::Queue(reader) => reader.arrived(),
            Incoming::Slot(_) => 0,
        }
    }

    /// As `recv_last`; its length.
    #[inline(always)]
    pub(crate) fn recv_last_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let Incoming::Queue(reader) = &mut self.incoming else { return None };
        let len = reader.read_last_into(buffer)?;
        self.was_received();
        Some(len)
    }

    /// The same.
    #[inline(always)]
    pub(crate) fn recv_last_message(&mut self, message: &mut Message) -> Option<usize> {
        let Incoming::Queue(reader) = &mut self.incoming else { return None };
        let len = reader.read_last(message)?;
        message.describe(self.described.as_ref());
        self.was_received();
        Some(len)
    }

    /// A part was read.
    #[inline(always)]
    fn was_received(&mut self) {
        self.answering = true;
        if let Link::Inproc(end) = &self.link
            && let Some(most) = end.wanted()
        {
            self.make_room_for_peer(most);
        }
    }

    /// Receives the next part, passing over commands; `None` if no whole message is there. Without
    /// memory for it, it stays the next one; into a buffer there always is.
    #[inline]
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Result<Option<Received>, NoMemory> {
        if !self.can_recv() {
            return Ok(None);
        }
        let Incoming::Queue(reader) = &mut self.incoming else { return Ok(self.recv_conflated(target)) };
        loop {
            let head = match target {
                Target::Buffer(buffer) => match reader.read_into(buffer) {
                    Some(head) => head,
                    None => return Ok(self.recv_note(target)),
                },
                Target::Message(message) => {
                    let Some(head) = reader.read_message(message)? else { return Ok(self.recv_note(target)) };
                    message.describe(self.described.as_ref());
                    head
                }
            };
            if head.flags & frame::COMMAND == 0 {
                self.was_received();
                return Ok(Some(Received { len: head.len, more: head.flags & frame::MORE != 0 }));
            }
        }
    }

    /// Drops the next part; false if no whole message is there.
    pub(crate) fn drop_part(&mut self) -> bool {
        matches!(self.recv(&mut Target::Buffer(&mut [])), Ok(Some(_)))
    }

    /// Receives the next frame whatever it is: a message part or a SUBSCRIBE or CANCEL command
    /// (`Head::flags` tells).
    pub(crate) fn recv_any(&mut self, message: &mut Message) -> Result<Option<Head>, NoMemory> {
        let Incoming::Queue(reader) = &mut self.incoming else { return Ok(None) };
        let Some(head) = reader.read_message(message)? else {
            if self.lean {
                self.rest_incoming();
            }
            return Ok(None);
        };
        message.describe(self.described.as_ref());
        Ok(Some(head))
    }

    /// The head of the next part, which is not consumed.
    pub(crate) fn head(&mut self) -> Option<Head> {
        let Incoming::Queue(reader) = &mut self.incoming else { return None };
        loop {
            let head = reader.head()?;
            if head.flags & frame::COMMAND == 0 {
                return Some(head);
            }
            reader.skip();
        }
    }

    /// Looks at the body of the next part without consuming it: two slices, of which the second one
    /// is mostly empty.
    pub(crate) fn peek(&mut self) -> Result<Option<[&[u8]; 2]>, NoMemory> {
        self.head();
        let Incoming::Queue(reader) = &mut self.incoming else { return Ok(None) };
        reader.peek()
    }

    /// Drops the next part if it is empty, with others behind it, and known to be so at a glance;
    /// `false` says nothing.
    #[inline]
    pub(crate) fn skip_delimiter(&mut self) -> bool {
        match &mut self.incoming {
            Incoming::Queue(reader) => reader.skip_delimiter(),
            Incoming::Slot(_) => false,
        }
    }

    /// Whether nothing has come that `can_recv` would find, as far as one look tells; `false` says
    /// nothing.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        match (&self.incoming, &self.link) {
            (Incoming::Queue(reader), Link::Wire(connection)) => {
                !reader.sees_more() && !connection.is_paused() && !self.has_notes()
            }
            _ => false,
        }
    }

    /// Drops the message whose next part is at the front: this part and all that follow until the
    /// last one.
    pub(crate) fn skip_message(&mut self) {
        while let Incoming::Queue(reader) = &mut self.incoming
            && let Some(head) = reader.skip()
        {
            if head.flags & (frame::COMMAND | frame::MORE) == 0 {
                return;
            }
        }
        // The newest message (ZMQ_CONFLATE), or one of ours about the peer.
        self.drop_part();
    }

    /// The same for a message that there is no memory for: that is counted.
    #[cold]
    pub(crate) fn lose_message(&mut self) {
        self.skip_message();
        self.dropped += 1;
    }
}
