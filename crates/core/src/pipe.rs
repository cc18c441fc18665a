//! A pipe: the owner's end of the way to one peer, over a connection or over inproc.
//!
//! Two queues of ZMTP frames, one each way (`queue`), plus what lies behind them. Only the socket's
//! owner touches a pipe; the I/O side works on the other ends of the queues.
//!
//! ```text
//!  Pipe ─┬─ Outgoing   what only sending needs: queue, flush rule, high-water mark
//!        ├─ Incoming   what only receiving needs
//!        ├─ Peer       what is known of the other end
//!        └─ Link       what lies behind both queues: a connection, or the other socket
//! ```
//!
//! The halves know nothing of each other, and are told of the link in each call. What a pattern may
//! do with a peer are the methods of `Pipe` in this file; those for the socket are in `upkeep`.

mod aside;
mod bells;
mod broadcast;
mod broadcasts;
mod conflate;
mod cork;
mod errands;
mod flush;
mod follow;
mod incoming;
mod keeper;
mod link;
mod looks;
mod names;
mod outgoing;
mod pace;
mod part;
mod peer;
mod pipes;
mod room;
mod route;
mod shown;
mod slots;
mod succession;
mod traffic;
mod upkeep;

pub(crate) use bells::Bells;
pub(crate) use broadcast::{Broadcast, LARGE};
pub use cork::Cork;
pub(crate) use errands::Left;
use incoming::Incoming;
pub(crate) use keeper::Keeper;
use link::Link;
use outgoing::Outgoing;
pub(crate) use part::{Body, Part, Received, Target};
pub(crate) use peer::Peer;
pub(crate) use pipes::{Pipes, SocketPipes};
pub(crate) use room::Else;
pub(crate) use route::{Route, Routes};
pub(crate) use shown::Sight;
pub(crate) use traffic::Traffic;

use crate::conn::THROUGH_LEAST;
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use crate::message::Message;
use crate::queue::{COPIED, Head, SHORT, Slot};
use crate::sync::Arc;

/// Names a pipe of one socket, from `attach` to `detach`. Reused afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PipeId(pub(crate) u32);

/// Where messages wait: in a queue, or the newest one only (ZMQ_CONFLATE).
enum Store<Q> {
    Queue(Q),
    Slot(Arc<Slot>),
}

impl<Q> From<Result<Q, Arc<Slot>>> for Store<Q> {
    fn from(queue: Result<Q, Arc<Slot>>) -> Self {
        queue.map_or_else(Store::Slot, Store::Queue)
    }
}

/// The owner's end of the way to one peer. What sending touches comes first (`Pipe::prefetch`).
#[repr(C)]
pub(crate) struct Pipe {
    link: Link,
    outgoing: Outgoing,
    incoming: Incoming,
    /// The other end.
    pub(crate) peer: Peer,
}

/// Sending, for a pattern.
impl Pipe {
    /// Whether the first part of a message would be taken now: the peer is not gone and below the
    /// high-water mark. `otherwise` is what becomes of the message if not: what is tried before the
    /// answer is no depends on that.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, otherwise: Else) -> bool {
        self.outgoing.has_room(&self.link, otherwise)
    }

    /// Appends one part; with the last part the message is published, and written at once or later
    /// by the flush rule. The caller has asked `has_room` before the first part; later parts are
    /// always taken if there is memory. The part's owned body may be taken or left (see
    /// `Part::consume`). After an error nothing has changed: the same part may be sent again.
    #[inline(always)]
    pub(crate) fn send(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        // The usual case: a last part, and a short one.
        if !part.more
            && let Some(bytes) = part.shorter_than(COPIED)
            && self.send_at_once(bytes, part.patient)
        {
            return Ok(());
        }
        self.send_any(part)
    }

    /// As `send`, for a message that is dropped if there is no memory for it: that is counted.
    /// Whether it was sent.
    #[inline]
    pub(crate) fn send_or_drop(&mut self, part: &mut Part<'_>) -> bool {
        let sent = self.send(part).is_ok();
        if !sent {
            self.drop_message();
        }
        sent
    }

    /// There is no memory, or no room, for a message: it is dropped for that, with the parts that
    /// were appended.
    #[cold]
    pub(crate) fn drop_message(&mut self) {
        self.rollback();
        self.outgoing.count_dropped();
    }

    /// Forgets the appended parts of an unfinished message.
    pub(crate) fn rollback(&mut self) {
        self.outgoing.rollback();
    }

    /// Sends a command frame (a subscription), which does not count against the high-water mark.
    /// Not within a message.
    pub(crate) fn send_command(&mut self, body: &[u8]) {
        if self.outgoing.put_command(&self.link, body) {
            self.published(body.len(), false);
        }
    }
}

/// Receiving, for a pattern.
impl Pipe {
    /// Whether a whole message can be received.
    #[inline(always)]
    pub(crate) fn can_recv(&mut self) -> bool {
        self.incoming.has_more() || self.can_recv_now()
    }

    /// Whether `recv_any` would find something, as cheaply as can be, for a caller that asks again
    /// and again and mostly in vain. Peers that wait for room or credit are not heard here but by
    /// `can_recv`.
    #[inline]
    pub(crate) fn sees_more(&self) -> bool {
        self.incoming.sees_more()
    }

    /// Whether nothing has come that `can_recv` would find, as far as one look tells; `false` says
    /// nothing.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.incoming.is_silent(&self.link)
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

    /// Receives the next part, passing over commands; `None` if no whole message is there. Without
    /// memory for it, it stays the next one; into a buffer there always is.
    #[inline]
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Result<Option<Received>, NoMemory> {
        if !self.can_recv() {
            return Ok(None);
        }
        let Some(received) = self.incoming.recv(target)? else {
            return Ok(self.incoming.recv_aside(&self.peer, target));
        };
        self.was_received();
        Ok(Some(received))
    }

    /// The head of the next part, which is not consumed.
    pub(crate) fn head(&mut self) -> Option<Head> {
        self.incoming.head()
    }

    /// Looks at the body of the next part without consuming it: two slices, of which the second one
    /// is mostly empty.
    pub(crate) fn peek(&mut self) -> Result<Option<[&[u8]; 2]>, NoMemory> {
        self.incoming.peek()
    }

    /// Drops the next part if it is empty, with others behind it, and known to be so at a glance;
    /// `false` says nothing.
    #[inline]
    pub(crate) fn skip_delimiter(&mut self) -> bool {
        self.incoming.skip_delimiter()
    }

    /// Drops the message whose next part is at the front: this part and all that follow until the
    /// last one.
    pub(crate) fn skip_message(&mut self) {
        if !self.incoming.skip_message() {
            // The newest message (ZMQ_CONFLATE), or one of ours about the peer.
            let _ = self.recv(&mut Target::Buffer(&mut []));
        }
    }
}

/// What a pattern may know of a pipe, and set.
impl Pipe {
    /// Whether the peer is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.outgoing.ended || self.link.is_closed()
    }

    /// Whether the peer is another socket of this program, or a datagram endpoint. Then
    /// `Pattern::readable` is not called when the pipe gets something to read: it must be looked
    /// at.
    pub(crate) fn is_inproc(&self) -> bool {
        matches!(self.link, Link::Inproc(_))
    }

    /// Whether this is no way to a peer but to a datagram endpoint.
    pub(crate) fn is_datagram(&self) -> bool {
        self.link.inproc_end().is_some_and(InprocEnd::is_device)
    }
}

/// What both halves have to do with, and the usual ways of a message: not for patterns.
impl Pipe {
    /// For `Pipes::recv_any`, and for what tests hold at the far end.
    pub(crate) fn recv_any(&mut self, message: &mut Message) -> Result<Option<Head>, NoMemory> {
        self.incoming.recv_any(&self.link, message)
    }

    /// As `send` for the last part of a message, if it is shorter than `COPIED` and there is memory
    /// for it in one piece; else false.
    #[inline(always)]
    fn send_at_once(&mut self, bytes: &[u8], patient: bool) -> bool {
        if bytes.len() >= SHORT {
            return self.send_medium(bytes, patient);
        }
        let appended = self.outgoing.put_short(bytes);
        if appended {
            self.published(bytes.len(), patient);
        }
        appended
    }

    /// The other cases of `send_at_once`, apart from it so that short bodies need fewer registers.
    #[inline(never)]
    fn send_medium(&mut self, bytes: &[u8], patient: bool) -> bool {
        let appended = self.outgoing.put_medium(bytes);
        if appended {
            self.published(bytes.len(), patient);
        }
        appended
    }

    /// As `send_at_once`, for a body that goes by reference to an inproc peer.
    #[inline(always)]
    fn send_owned_at_once(&mut self, message: &mut Message, patient: bool) -> bool {
        let len = message.len();
        let appended = self.outgoing.put_owned(message);
        if appended {
            self.published(len, patient);
        }
        appended
    }

    #[inline(never)]
    fn send_any(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let len = part.bytes().len();
        if len >= THROUGH_LEAST && !part.more && self.outgoing.writes_through(&self.link, part) {
            return self.send_through(part);
        }
        if self.outgoing.put(&self.link, part)? {
            self.published(len, part.patient);
        }
        Ok(())
    }

    /// A large message, from the caller's own buffer.
    #[cold]
    fn send_through(&mut self, part: &Part<'_>) -> Result<(), NoMemory> {
        if self.outgoing.write_through(&self.link, part)? {
            self.flush_by_rule(part.bytes().len(), part.patient);
        }
        Ok(())
    }

    /// A message was published.
    #[inline(always)]
    fn published(&mut self, len: usize, patient: bool) {
        match &self.link {
            Link::Wire(connection) => {
                if self.outgoing.is_due(connection) {
                    self.flush_by_rule(len, patient);
                }
                self.outgoing.answering = false;
            }
            Link::Inproc(end) => self.outgoing.tell(end, len, patient),
        }
    }

    #[inline(never)]
    fn flush_by_rule(&mut self, len: usize, patient: bool) {
        // The peer waits for this message if it had sent something, and nothing more than that.
        let reply = self.outgoing.answering && self.incoming.is_read();
        self.outgoing.flush_by_rule(&self.link, len, reply, patient);
    }

    #[inline(never)]
    fn can_recv_now(&mut self) -> bool {
        self.incoming.can_recv_now(&self.link)
    }

    /// A part was read.
    #[inline(always)]
    fn was_received(&mut self) {
        self.outgoing.answering = true;
        if let Link::Inproc(end) = &self.link
            && let Some(most) = end.wanted()
        {
            self.make_room_for_peer(most);
        }
    }

    #[cold]
    fn make_room_for_peer(&mut self, most: u32) {
        self.incoming.make_room_for_peer(&self.link, most);
    }
}
