//! A pipe: the owner's end of the link to one peer, over a connection or over inproc.
//!
//! A pipe has two queues of ZMTP frames, one in each direction (`queue`), and the link behind them.
//! Only the socket's owner touches a pipe. The I/O side works on the other ends of the queues.
//!
//! ```text
//!  Pipe ─┬─ Outgoing   sending: queue, flush rule, high-water mark
//!        │     └─ Link object behind both queues: a connection, or the other socket
//!        ├─ Incoming   state of receiving only
//!        └─ Peer       information about the other end
//! ```
//!
//! The two halves do not know each other. A pattern may call the methods of `Pipe` in this file and
//! the `pub(crate)` methods of the halves. The methods of `Pipe` for the socket are in `upkeep`.

mod address_cache;
mod discards;
mod flush;
mod incoming;
mod outgoing;
mod pace;
mod part;
mod peer;
mod peer_report;
mod pipes;
mod probe;
mod replacement;
mod room;
mod route;
mod topic_access;
mod traffic;
mod upkeep;
mod wake_rule;

pub use discards::{DiscardReason, Examples, TopicExample};
pub use flush::Cork;
use incoming::Incoming;
use outgoing::{Link, Outgoing};
pub(crate) use part::{Body, Delivered, LARGE, Part, Target};
pub(crate) use peer::Peer;
pub use peer_report::{PeerReport, PeerState};
pub(crate) use pipes::{Broadcast, Pipes, SocketPipes};
pub use probe::{ConnectionCounts, PeerCounts, PeerProbe, SocketCounts, SocketProbe};
pub(crate) use room::OnFull;
pub(crate) use route::{Route, Routes};
pub(crate) use topic_access::TopicAccess;
pub(crate) use traffic::{PipesShared, Traffic};
pub(crate) use wake_rule::WakeRule;

use crate::conn::THROUGH_LEAST;
use crate::conn::inproc::InprocEnd;
use crate::error::NoMemory;
use tautline_io::lending::may_lend;
use tautline_proto::frame;
use tautline_queue::message::Message;
use tautline_queue::sync::Arc;
use tautline_queue::{COPIED, FrameHead, LatestMessage, SHORT};

/// Names a pipe of one socket, from `attach` to `detach`. Reused afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PipeId(pub(crate) u32);

/// Storage of waiting messages: a queue, or only the newest message (ZMQ_CONFLATE).
enum Store<Q> {
    Queue(Q),
    Slot(Arc<LatestMessage>),
}

impl<Q> From<Result<Q, Arc<LatestMessage>>> for Store<Q> {
    fn from(queue: Result<Q, Arc<LatestMessage>>) -> Self {
        queue.map_or_else(Store::Slot, Store::Queue)
    }
}

/// The owner's end of the link to one peer. The fields that sending touches come first
/// (`Pipe::prefetch`).
#[repr(C)]
pub(crate) struct Pipe {
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    /// The other end.
    pub(crate) peer: Peer,
}

/// Sending, for a pattern.
impl Pipe {
    /// Appends one part. The last part publishes the message, which is written at once or later by
    /// the flush rule. The caller has called `has_room` before the first part; later parts are
    /// always taken if there is memory. The part's owned body may be taken or left (see
    /// `Part::consume`). After an error the pipe is unchanged, and the same part may be sent again.
    #[inline(always)]
    pub(crate) fn send(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        // The usual case: a last part, and a short one.
        if !part.more
            && let Some(bytes) = part.shorter_than(COPIED)
            && self.try_send_short(bytes, part.patient)
        {
            return Ok(());
        }
        self.send_any(part)
    }

    /// Appends one part like `send`. If there is no memory for the part, drops and counts its
    /// message. Returns true if the part was sent.
    #[inline]
    pub(crate) fn send_or_drop(&mut self, part: &mut Part<'_>) -> bool {
        let sent = self.send(part).is_ok();
        if !sent {
            self.outgoing.drop_message();
        }
        sent
    }

    /// Sends a command frame (a subscription), which does not count against the high-water mark.
    /// Must not be called within a message. If there is no memory for it, the connection ends: the
    /// next session begins with all the state that the peer must know.
    pub(crate) fn send_command(&mut self, body: &[u8]) {
        let Outgoing { link, store: Store::Queue(writer), ended: false, .. } = &mut self.outgoing else {
            return;
        };
        if matches!(link, Link::Inproc(end) if end.refuses_commands()) {
            return;
        }
        match (writer.append(frame::COMMAND, body), link) {
            (Ok(()), _) => {
                writer.publish_uncounted();
                self.handle_publication(body.len(), false);
            }
            (Err(_), Link::Wire(connection)) => connection.lose_unsendable(),
            (Err(_), Link::Inproc(_)) => writer.count_dropped(1),
        }
    }
}

/// Receiving, for a pattern.
impl Pipe {
    /// True if a whole message can be received.
    #[inline(always)]
    pub(crate) fn can_recv(&mut self) -> bool {
        self.incoming.has_more() || self.incoming.can_recv_now(&self.outgoing.link)
    }

    /// True if one quick look shows that `can_recv` would find no message. If it returns false, the
    /// state is unknown.
    #[inline]
    pub(crate) fn is_known_empty(&self) -> bool {
        match (&self.incoming.store, &self.outgoing.link) {
            (Store::Queue(reader), Link::Wire(connection)) => {
                !reader.has_published_frame()
                    && !connection.is_paused()
                    && !self.incoming.has_event_messages()
            }
            _ => false,
        }
    }

    /// Receives the next part if it is the last of its message and known to be available. If it
    /// returns `None`, `recv` may still find a part.
    #[inline(always)]
    pub(crate) fn recv_last(&mut self, target: &mut Target<'_>) -> Option<Delivered> {
        let len = match target {
            Target::Buffer(buffer) => self.recv_last_into(buffer)?,
            Target::Message(message) => self.recv_last_message(message)?,
        };
        Some(Delivered { len, more: false })
    }

    /// Does the work of `recv_last` for a buffer. Returns the length of the part.
    #[inline(always)]
    pub(crate) fn recv_last_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let Store::Queue(reader) = &mut self.incoming.store else { return None };
        let len = reader.read_last_into(buffer)?;
        self.record_receipt();
        Some(len)
    }

    /// Does the work of `recv_last` for a message. Returns the length of the part.
    #[inline(always)]
    pub(crate) fn recv_last_message(&mut self, message: &mut Message) -> Option<usize> {
        let Store::Queue(reader) = &mut self.incoming.store else { return None };
        let len = reader.read_last(message)?;
        message.replace_metadata(self.incoming.metadata.as_ref());
        self.record_receipt();
        Some(len)
    }

    /// Receives the next part and skips commands. Returns `None` if there is no whole message. If
    /// there is no memory for the part, it stays the next one. A buffer target never needs memory.
    #[inline]
    pub(crate) fn recv(&mut self, target: &mut Target<'_>) -> Result<Option<Delivered>, NoMemory> {
        if !self.can_recv() {
            return Ok(None);
        }
        let Incoming { store: Store::Queue(reader), metadata, .. } = &mut self.incoming else {
            return Ok(self.incoming.recv_unqueued(target));
        };
        loop {
            let head = match target {
                Target::Buffer(buffer) => reader.read_into(buffer),
                Target::Message(message) => {
                    let head = reader.read_message(message)?;
                    if head.is_some() {
                        message.replace_metadata(metadata.as_ref());
                    }
                    head
                }
            };
            let Some(FrameHead { len, flags }) = head else {
                return Ok(self.incoming.recv_unqueued(target));
            };
            if flags & frame::COMMAND == 0 {
                self.record_receipt();
                return Ok(Some(Delivered { len, more: flags & frame::MORE != 0 }));
            }
        }
    }

    /// Drops the message at the front: its next part and all following parts up to the last one.
    pub(crate) fn skip_message(&mut self) {
        while let Store::Queue(reader) = &mut self.incoming.store
            && let Some(head) = reader.skip()
        {
            if head.flags & (frame::COMMAND | frame::MORE) == 0 {
                return;
            }
        }
        // The next part is the newest message (ZMQ_CONFLATE), or a message of this library about
        // the peer.
        let _ = self.recv(&mut Target::Buffer(&mut []));
    }
}

/// Properties of a pipe that a pattern may read and set.
impl Pipe {
    /// True if the peer is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.outgoing.ended || self.inproc_end().is_some_and(InprocEnd::is_closed)
    }

    /// True if the peer is another socket of this program, or a datagram endpoint.
    /// `Pattern::handle_readable` is not called when such a pipe gets messages, so the pattern must
    /// check it.
    pub(crate) fn is_inproc(&self) -> bool {
        matches!(self.outgoing.link, Link::Inproc(_))
    }
}

/// Steps that involve both halves, and the fast paths of a message: not for patterns.
impl Pipe {
    /// Receives the next frame of any kind, a message part or a command. Used by `Pipes::recv_any`
    /// and by tests at the far end.
    pub(crate) fn recv_any(&mut self, message: &mut Message) -> Result<Option<FrameHead>, NoMemory> {
        let Store::Queue(reader) = &mut self.incoming.store else { return Ok(None) };
        let Some(head) = reader.read_message(message)? else {
            if self.incoming.lean {
                self.incoming.release_memory(&self.outgoing.link);
            }
            return Ok(None);
        };
        message.replace_metadata(self.incoming.metadata.as_ref());
        Ok(Some(head))
    }

    /// Appends and publishes the last part of a message, if the part is shorter than `COPIED` and
    /// there is contiguous memory for it. Otherwise returns false and changes nothing.
    #[inline(always)]
    fn try_send_short(&mut self, bytes: &[u8], patient: bool) -> bool {
        if bytes.len() >= SHORT {
            return self.try_send_medium(bytes, patient);
        }
        let Store::Queue(writer) = &mut self.outgoing.store else { return false };
        let is_appended = writer.append_short(0, bytes);
        if is_appended {
            writer.publish();
            self.handle_publication(bytes.len(), patient);
        }
        is_appended
    }

    /// Does the work of `try_send_short` for bodies of at least `SHORT` bytes. A separate function,
    /// so that short bodies need fewer registers.
    #[inline(never)]
    fn try_send_medium(&mut self, bytes: &[u8], patient: bool) -> bool {
        let Store::Queue(writer) = &mut self.outgoing.store else { return false };
        let is_appended = writer.append_medium(0, bytes);
        if is_appended {
            writer.publish();
            self.handle_publication(bytes.len(), patient);
        }
        is_appended
    }

    /// Sends a last part whose body is short or travels by reference to an inproc peer. Returns
    /// false, and changes nothing, for any other body or if there is no contiguous memory.
    #[inline(always)]
    fn try_send_owned(&mut self, message: &mut Message, patient: bool) -> bool {
        let Store::Queue(writer) = &mut self.outgoing.store else { return false };
        let len = message.len();
        let is_appended = writer.append_parcel(0, message)
            || message.shorter_than(COPIED).is_some_and(|bytes| writer.append_medium(0, bytes));
        if is_appended {
            writer.publish();
            self.handle_publication(len, patient);
        }
        is_appended
    }

    /// Sends a part that `try_send_short` did not send.
    #[inline(never)]
    fn send_any(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let len = part.bytes().len();
        if len >= THROUGH_LEAST && (!part.more || may_lend(len)) && self.try_send_large(part)? {
            return Ok(());
        }
        let out = &mut self.outgoing;
        let Store::Queue(writer) = &mut out.store else { return out.put_conflated(part) };
        let flags = if part.more { frame::MORE } else { 0 };
        match (&mut part.body, &out.link) {
            (Body::Borrowed(bytes), _) => writer.append(flags, bytes)?,
            // A message that cannot be sent now stays in the application's memory, which is freed
            // when it is sent: programs rely on that.
            (Body::Owned(message), Link::Wire(connection))
                if message.is_foreign() && !connection.is_linked() =>
            {
                writer.append_kept(flags, message)?;
            }
            (Body::Owned(message), _) => writer.append_message(flags, message)?,
        }
        if part.more {
            out.in_message = true;
        } else {
            writer.publish();
            self.handle_publication(len, part.patient);
        }
        Ok(())
    }

    /// Called after a message, or a command between messages, was published.
    #[inline(always)]
    fn handle_publication(&mut self, len: usize, patient: bool) {
        let out = &mut self.outgoing;
        out.in_message = false;
        match &out.link {
            Link::Wire(connection) => {
                if out.flush.count() || connection.hint.take() {
                    self.flush_by_rule(len, patient);
                }
                self.outgoing.received_since_send = false;
            }
            Link::Inproc(end) => {
                if !out.quiet {
                    end.notify();
                }
                if patient {
                    out.pacer.pace_inproc(end, &mut out.store, len);
                }
            }
        }
    }

    /// Called after a part was read.
    #[inline(always)]
    fn record_receipt(&mut self) {
        self.outgoing.received_since_send = true;
        if let Link::Inproc(end) = &self.outgoing.link
            && let Some(most) = end.requested_room()
        {
            self.make_room_for_peer(most);
        }
    }

    /// Gives credit to the inproc peer, which waits until at most `most` messages are queued.
    #[cold]
    fn make_room_for_peer(&mut self, most: u32) {
        let (Link::Inproc(end), Store::Queue(reader)) = (&self.outgoing.link, &mut self.incoming.store)
        else {
            return;
        };
        if reader.queued() <= u64::from(most) {
            reader.credit();
            end.notify_room();
        }
    }
}
