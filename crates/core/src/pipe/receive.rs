//! Receiving from a pipe: what is queued, part by part.

use super::{Incoming, Link, Pipe, Received, Target};
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

    /// Receives the next part, passing over commands; `None` if no whole message is there.
    #[inline]
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Option<Received> {
        if !self.can_recv() {
            return None;
        }
        let Incoming::Queue(reader) = &mut self.incoming else { return self.recv_conflated(target) };
        loop {
            let head = match target {
                Target::Buffer(buffer) => match reader.read_into(buffer) {
                    Some(head) => head,
                    None => return self.recv_note(target),
                },
                Target::Message(message) => {
                    let Some(head) = reader.read_message(message) else { return self.recv_note(target) };
                    message.describe(self.described.as_ref());
                    head
                }
            };
            if head.flags & frame::COMMAND == 0 {
                self.was_received();
                return Some(Received { len: head.len, more: head.flags & frame::MORE != 0 });
            }
        }
    }

    /// Receives the next frame whatever it is: a message part or a SUBSCRIBE or CANCEL command
    /// (`Head::flags` tells).
    pub(crate) fn recv_any(&mut self, message: &mut Message) -> Option<Head> {
        let Incoming::Queue(reader) = &mut self.incoming else { return None };
        let Some(head) = reader.read_message(message) else {
            if self.lean {
                self.rest_incoming();
            }
            return None;
        };
        message.describe(self.described.as_ref());
        Some(head)
    }

    /// Looks at the next part without consuming it: its head and its body in two slices (the second
    /// one mostly empty).
    pub(crate) fn peek(&mut self) -> Option<(Head, &[u8], &[u8])> {
        let Incoming::Queue(reader) = &mut self.incoming else { return None };
        while reader.head()?.flags & frame::COMMAND != 0 {
            reader.skip();
        }
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
        let Incoming::Queue(reader) = &mut self.incoming else { return };
        while let Some(head) = reader.skip() {
            if head.flags & (frame::COMMAND | frame::MORE) == 0 {
                return;
            }
        }
    }
}
