//! A pipe: the owner's end of the way to one peer, over a connection or over inproc.
//!
//! Two queues of ZMTP frames, one each way (`queue`), plus what lies behind them (`Link`). Only the
//! socket's owner touches a pipe; the I/O side works on the other ends of the queues. Everything a
//! pattern may do with a peer is a method here.

mod aside;
mod bells;
mod broadcast;
mod broadcasts;
mod conflate;
mod cork;
mod flush;
mod follow;
mod names;
mod notes;
mod pace;
mod part;
mod pipes;
mod receive;
mod straight;
mod traffic;

use aside::Aside;
pub(crate) use bells::Bells;
pub(crate) use broadcast::{Broadcast, LARGE};
pub use cork::Cork;
pub(crate) use names::Found;
pub(crate) use part::{Body, Part, Received, Target};
pub(crate) use pipes::{Left, Pipes};
pub(crate) use traffic::Traffic;

use crate::conn::inproc::{InprocEnd, Offer};
use crate::conn::{Connection, NewPipe, PeerInfo, SocketInbox, THROUGH_LEAST};
use crate::error::NoMemory;
use crate::message::{Message, Metadata};
use crate::queue::{COPIED, FrameReader, FrameWriter, Progress, SHORT, Slot};
use crate::sync::Arc;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::fence;
use crate::sync::prefetch;
use crate::timing::flush::FlushRule;
use std::mem::offset_of;
use tautline_io::clock;
use tautline_io::net::Stream;
use tautline_proto::frame;

/// Messages beyond the high-water mark within this time are a burst.
const BURST_TIME_NS: u64 = 10_000_000;
/// An owner that sleeps until the kernel takes more counts as at work for this long: it writes by
/// itself as soon as that is so.
const WAITED_FOR_NS: u64 = 1_000_000;

/// Names a pipe of one socket, from `attach` to `detach`. Reused afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PipeId(pub(crate) u32);

/// The outgoing queue, or the newest message only (ZMQ_CONFLATE).
enum Outgoing {
    Queue(FrameWriter),
    Slot(Arc<Slot>),
}

/// The incoming queue, or the newest message only (ZMQ_CONFLATE).
enum Incoming {
    Queue(FrameReader),
    Slot(Arc<Slot>),
}

/// What lies behind the queues.
enum Link {
    /// A connection of a byte-stream transport.
    Wire(Arc<Connection>),
    /// Another socket of the same context.
    Inproc(InprocEnd),
}

/// The owner's end of the way to one peer. What sending touches comes first (`prefetch`), up to the
/// beginning of the flush rule.
#[repr(C)]
pub(crate) struct Pipe {
    outgoing: Outgoing,
    link: Link,
    /// The peer is gone: nothing can be sent, what was received can still be read.
    ended: bool,
    /// Some parts of a message were appended, the last one not yet.
    in_message: bool,
    /// Something was received since the last message was sent.
    answering: bool,
    /// The inproc peer is not woken with each message (see `Summons`).
    quiet: bool,
    /// One of many: its queues hold no memory while they are empty.
    lean: bool,
    /// It has told in `left_in` that it is to give up its memory.
    unrested: bool,
    /// It has told there that it must be flushed.
    left: bool,
    /// `takes` has refused a burst.
    burst_refused: bool,
    flush: FlushRule,
    /// The connection reads a log, and what is to be sent goes there: this is how far it has come
    /// (see `Broadcast`).
    follows: Option<Arc<Progress>>,
    /// The pipe's name, and where it tells what is to be done before the owner sleeps.
    left_in: Option<(PipeId, Arc<Left>)>,
    incoming: Incoming,
    peer: Option<Box<PeerInfo>>,
    /// What received messages are told of the peer, if there is anything.
    described: Option<Arc<Metadata>>,
    /// Messages that this pipe has missed since there was room (see `takes_or_misses`).
    missed: u32,
    /// ZMQ_SNDHWM, for inproc, where the peer's part comes on top.
    send_hwm: u32,
    /// The peer took nothing while a sender waited for it: `Connection::writes` then (see `pace`).
    paced_out: Option<u32>,
    /// Messages dropped for want of room.
    dropped: u64,
    /// When `takes` last looked (clock ticks).
    mark_reached: u64,
    /// What most pipes have nothing of.
    aside: Option<Box<Aside>>,
    /// The name by which ROUTER and STREAM know this peer; set by the pattern (or by
    /// ZMQ_CONNECT_ROUTING_ID before `attach`).
    pub(crate) routing_id: Vec<u8>,
    /// Made by `connect`, not by a peer arriving at a bound endpoint.
    pub(crate) connected_here: bool,
}

/// Whether there is no session that could send.
fn is_unlinked(link: &Link) -> bool {
    matches!(link, Link::Wire(connection) if !connection.is_linked())
}

impl Pipe {
    /// Whether the first part of a message would be taken now: the peer is not gone and below the
    /// high-water mark. At the mark the caller itself pumps the connection before it says no.
    #[inline]
    pub(crate) fn can_send(&mut self) -> bool {
        match &mut self.outgoing {
            Outgoing::Queue(writer) if !self.ended => writer.has_room() || self.make_room(),
            Outgoing::Slot(_) => !self.ended,
            Outgoing::Queue(_) => false,
        }
    }

    /// Whether `can_send` would say so without a look at anything.
    #[inline(always)]
    pub(crate) fn has_room_for_sure(&self) -> bool {
        !self.ended && matches!(&self.outgoing, Outgoing::Queue(writer) if writer.has_room_for_sure())
    }

    /// As `can_send`, for socket types where a message that is not sent is not lost. A sender that
    /// does not wait is refused when it has sent more than the high-water mark in one burst, though
    /// the kernel may have taken it all: else the mark would mean nothing to it, as the kernel's
    /// buffers hold thousands of small messages. The next try succeeds if there is room.
    #[inline]
    pub(crate) fn takes(&mut self, patient: bool) -> bool {
        match &self.outgoing {
            Outgoing::Queue(writer) if !self.ended && writer.has_room_for_sure() => true,
            _ => self.can_send() && (patient || !self.is_burst()),
        }
    }

    #[cold]
    fn is_burst(&mut self) -> bool {
        if !matches!((&self.link, &self.outgoing), (Link::Wire(_), Outgoing::Queue(_))) {
            return false;
        }
        let now = clock::ticks();
        let before = std::mem::replace(&mut self.mark_reached, now);
        self.burst_refused = before != 0 && now.saturating_sub(before) < clock::nanos_to_ticks(BURST_TIME_NS);
        self.burst_refused
    }

    /// As `can_send`, for a message that is dropped if not: that is counted. If another thread is
    /// writing the queue just now, this one waits for it: a reply must not be lost because the
    /// peer's next request was faster than the credit for the reply before.
    #[inline]
    pub(crate) fn takes_or_drops(&mut self) -> bool {
        self.can_send() || self.has_room_after_others() || {
            self.dropped += u64::from(!self.ended);
            false
        }
    }

    /// Appends one part; with the last part the message is published, and written at once or later
    /// by the flush rule. The caller has asked `can_send` before the first part; later parts are
    /// always taken if there is memory. The part's owned body may be taken or left (see
    /// `Part::consume`). After an error nothing has changed: the same part may be sent again.
    #[inline(always)]
    pub(crate) fn send(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        // The usual case: a last part, and a short one.
        let copied = if part.more { None } else { part.shorter_than(COPIED) };
        if copied.is_some_and(|bytes| self.send_at_once(bytes, part.patient)) {
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

    /// There is no memory for a message: what was appended of it is forgotten.
    #[cold]
    pub(crate) fn drop_message(&mut self) {
        self.rollback();
        self.dropped += 1;
    }

    /// As `send` for the last part of a message, if it is shorter than `COPIED` and there is memory
    /// for it in one piece; else false.
    #[inline(always)]
    pub(crate) fn send_at_once(&mut self, bytes: &[u8], patient: bool) -> bool {
        if bytes.len() >= SHORT {
            return self.send_medium(bytes, patient);
        }
        let Outgoing::Queue(writer) = &mut self.outgoing else { return false };
        let appended = writer.append_short(0, bytes);
        if appended {
            writer.publish();
            self.in_message = false;
            self.published(bytes.len(), patient);
        }
        appended
    }

    /// The other cases of `send_at_once`, apart from it so that short bodies need fewer registers.
    #[inline(never)]
    fn send_medium(&mut self, bytes: &[u8], patient: bool) -> bool {
        let Outgoing::Queue(writer) = &mut self.outgoing else { return false };
        let appended = writer.append_medium(0, bytes);
        if appended {
            writer.publish();
            self.in_message = false;
            self.published(bytes.len(), patient);
        }
        appended
    }

    /// As `send_at_once`, for a body that goes by reference to an inproc peer.
    #[inline(always)]
    pub(crate) fn send_owned_at_once(&mut self, message: &mut Message, patient: bool) -> bool {
        let Outgoing::Queue(writer) = &mut self.outgoing else { return false };
        let len = message.len();
        let appended = writer.append_parcel(0, message)
            || message.shorter_than(COPIED).is_some_and(|bytes| writer.append_medium(0, bytes));
        if appended {
            writer.publish();
            self.in_message = false;
            self.published(len, patient);
        }
        appended
    }

    #[inline(never)]
    fn send_any(&mut self, part: &mut Part<'_>) -> Result<(), NoMemory> {
        let flags = if part.more { frame::MORE } else { 0 };
        let len = part.bytes().len();
        if len >= THROUGH_LEAST && flags == 0 && !self.in_message && self.writes_through(part) {
            return self.send_through(part);
        }
        match &mut self.outgoing {
            Outgoing::Queue(writer) => {
                match &mut part.body {
                    Body::Borrowed(bytes) => writer.append(flags, bytes)?,
                    // What cannot be sent for now stays in the application's memory, which is freed
                    // when it is sent: programs watch that.
                    Body::Owned(message) if message.is_foreign() && is_unlinked(&self.link) => {
                        writer.append_kept(flags, message)?;
                    }
                    Body::Owned(message) => writer.append_message(flags, message)?,
                }
                self.in_message = part.more;
                if !part.more {
                    writer.publish();
                    self.published(len, part.patient);
                }
                Ok(())
            }
            Outgoing::Slot(_) => self.send_conflated(part),
        }
    }

    fn writes_through(&self, part: &Part<'_>) -> bool {
        let (Link::Wire(connection), Outgoing::Queue(_), Body::Borrowed(_)) =
            (&self.link, &self.outgoing, &part.body)
        else {
            return false;
        };
        connection.writes_through(part.bytes().len())
    }

    /// Forgets the appended parts of an unfinished message.
    pub(crate) fn rollback(&mut self) {
        if let Outgoing::Queue(writer) = &mut self.outgoing {
            writer.rollback();
        }
        self.in_message = false;
    }

    /// Sends a command frame (a subscription), which does not count against the high-water mark.
    /// Not within a message. Without memory for it a connection ends: the next session begins with
    /// all that the peer must know.
    pub(crate) fn send_command(&mut self, body: &[u8]) {
        if self.inproc_end().is_some_and(InprocEnd::refuses_commands) {
            return;
        }
        if let (Outgoing::Queue(writer), false) = (&mut self.outgoing, self.ended) {
            match (writer.append(frame::COMMAND, body), &self.link) {
                (Ok(()), _) => {
                    writer.publish_uncounted();
                    self.published(body.len(), false);
                }
                (Err(_), Link::Wire(connection)) => connection.lose_unsendable(),
                (Err(_), Link::Inproc(_)) => self.dropped += 1,
            }
        }
    }

    /// Whether `Pattern::readable` is called when this pipe gets something to read after it was
    /// found empty. If not (inproc), a fair queue must keep looking at the pipe.
    pub(crate) fn announces(&self) -> bool {
        matches!(self.link, Link::Wire(_))
    }

    /// Whether this is no way to a peer but to a datagram endpoint.
    pub(crate) fn is_datagram(&self) -> bool {
        self.inproc_end().is_some_and(InprocEnd::is_device)
    }

    /// Brings the part that sending touches into the cache, without a look at it.
    #[inline]
    fn prefetch(slot: &Option<Pipe>) {
        let start = std::ptr::from_ref(slot).cast::<u8>();
        // Also where the slot does not begin with a line.
        for line in (0..offset_of!(Pipe, flush) + 64).step_by(64) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// The same for what lies behind it.
    #[inline]
    fn prefetch_queue(&self) {
        if let Outgoing::Queue(writer) = &self.outgoing {
            writer.prefetch();
        }
        if let Link::Wire(connection) = &self.link {
            prefetch(&raw const connection.swept);
        }
    }

    /// What the handshake told about the peer; `None` before it.
    pub(crate) fn peer(&self) -> Option<&PeerInfo> {
        self.peer.as_deref()
    }
}

impl Pipe {
    /// The pipe of a connection, whose news carry `token` from now on.
    pub(crate) fn wire(new: NewPipe) -> Self {
        let NewPipe { connection, outgoing, incoming, connected_here } = new;
        Pipe::over(Link::Wire(connection), outgoing, incoming, connected_here)
    }

    /// The pipe of an inproc end.
    pub(crate) fn inproc(offer: Offer, send_hwm: u32, connected_here: bool) -> Self {
        let Offer { end, mut outgoing, incoming, .. } = offer;
        if let Ok(writer) = &mut outgoing {
            writer.set_limit(end.send_limit(send_hwm));
        }
        let mut pipe = Pipe::over(Link::Inproc(end), outgoing, incoming, connected_here);
        pipe.send_hwm = send_hwm;
        pipe
    }

    fn over(
        link: Link,
        outgoing: Result<FrameWriter, Arc<Slot>>,
        incoming: Result<FrameReader, Arc<Slot>>,
        connected_here: bool,
    ) -> Self {
        Pipe {
            outgoing: outgoing.map_or_else(Outgoing::Slot, Outgoing::Queue),
            incoming: incoming.map_or_else(Incoming::Slot, Incoming::Queue),
            link,
            flush: FlushRule::default(),
            follows: None,
            quiet: false,
            missed: 0,
            peer: None,
            described: None,
            left_in: None,
            left: false,
            lean: false,
            unrested: false,
            in_message: false,
            answering: false,
            paced_out: None,
            dropped: 0,
            mark_reached: 0,
            burst_refused: false,
            ended: false,
            aside: None,
            send_hwm: 0,
            routing_id: Vec::new(),
            connected_here,
        }
    }

    /// Names the pipe towards the I/O side or the other inproc end.
    pub(crate) fn attached(&mut self, id: PipeId, inbox: &Arc<SocketInbox>, receive_hwm: u32) {
        match &self.link {
            Link::Wire(connection) => {
                connection.set_token(id.0);
                connection.heard();
            }
            Link::Inproc(end) => {
                // The peer's limit is at least ours; with half of that it never waits for credit
                // that is due.
                if let Incoming::Queue(reader) = &mut self.incoming {
                    reader.set_credit_every(receive_hwm);
                }
                end.attach(inbox, id.0, receive_hwm);
            }
        }
    }

    /// The handshake is done, again maybe.
    pub(crate) fn set_peer(&mut self, peer: Box<PeerInfo>) {
        self.described = (!peer.metadata.is_empty()).then(|| peer.metadata.clone());
        self.peer = Some(peer);
        if let (Link::Inproc(end), Outgoing::Queue(writer)) = (&self.link, &mut self.outgoing) {
            writer.set_limit(end.send_limit(self.send_hwm));
        }
    }

    /// The peer is gone; what was received stays readable.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.rollback();
    }

    /// Whether the peer is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended || matches!(&self.link, Link::Inproc(end) if end.is_closed())
    }

    /// `News::Readable` has come.
    pub(crate) fn heard(&self) {
        if let Link::Wire(connection) = &self.link {
            connection.heard();
        }
    }

    /// One of many from now on.
    pub(super) fn set_lean(&mut self) {
        if let (Link::Wire(connection), false) = (&self.link, self.lean) {
            self.lean = true;
            connection.set_lean();
            if let Outgoing::Queue(writer) = &mut self.outgoing {
                writer.set_lean();
            }
        }
    }

    /// The connection behind the pipe, if it is not inproc.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        match &self.link {
            Link::Wire(connection) => Some(connection),
            Link::Inproc(_) => None,
        }
    }

    /// The inproc end behind the pipe, if it is one.
    pub(crate) fn inproc_end(&self) -> Option<&InprocEnd> {
        match &self.link {
            Link::Wire(_) => None,
            Link::Inproc(end) => Some(end),
        }
    }

    /// ZMQ_SNDHWM or ZMQ_RCVHWM has changed.
    pub(crate) fn set_limits(&mut self, send_hwm: u32, receive_hwm: u32) {
        match &self.link {
            Link::Wire(connection) => {
                connection.set_receive_limit(receive_hwm);
                if let Outgoing::Queue(writer) = &mut self.outgoing {
                    writer.set_limit_in_steps(send_hwm);
                }
            }
            Link::Inproc(end) => {
                end.set_receive_hwm(receive_hwm);
                self.send_hwm = send_hwm;
                if let Outgoing::Queue(writer) = &mut self.outgoing {
                    writer.set_limit(end.send_limit(send_hwm));
                }
            }
        }
    }

    /// From now on at most `limit` messages of a connection wait for the owner, 0 for any number.
    pub(crate) fn set_receive_limit(&mut self, limit: u32) {
        if let Link::Wire(connection) = &self.link {
            connection.set_receive_limit(limit);
        }
    }

    /// Before the owner sleeps until it can send: what to poll for room (inproc peers wake the
    /// owner instead).
    pub(crate) fn wait_for_room(&mut self) -> Option<Arc<Stream>> {
        match &self.link {
            Link::Wire(connection) => {
                connection.note_work(clock::ticks() + clock::nanos_to_ticks(WAITED_FOR_NS));
                connection.writable_stream()
            }
            Link::Inproc(end) => {
                if let Outgoing::Queue(writer) = &self.outgoing {
                    end.want_room(writer.limit());
                }
                None
            }
        }
    }

    /// Whether the queue is full just now, without pumping.
    pub(crate) fn is_full(&mut self) -> bool {
        match &mut self.outgoing {
            Outgoing::Queue(writer) => {
                let limit = u64::from(writer.limit());
                let behind = self.follows.as_ref().map_or(0, |progress| progress.behind());
                !writer.has_room() || limit > 0 && behind >= limit
            }
            Outgoing::Slot(_) => false,
        }
    }

    /// The inproc peer waits until at most `most` messages are queued.
    #[cold]
    fn make_room_for_peer(&mut self, most: u32) {
        let (Link::Inproc(end), Incoming::Queue(reader)) = (&self.link, &mut self.incoming) else { return };
        if reader.queued() <= u64::from(most) {
            reader.credit();
            end.give_room();
        }
    }

    /// Nothing to read: the queue holds no memory until something comes.
    fn rest_incoming(&mut self) {
        if let (Link::Wire(connection), Incoming::Queue(reader)) = (&self.link, &mut self.incoming)
            && reader.holds_memory()
        {
            connection.rest_incoming(reader);
        }
    }

    /// Nothing to read: a peer that waits for this is told.
    #[inline(never)]
    fn found_empty(&mut self) {
        match &self.link {
            Link::Wire(connection) => {
                // Gave credit, now looks for the note: the other way round in
                // `Connection::pause_if_full`.
                fence(SeqCst);
                if connection.is_paused() {
                    connection.resume();
                }
                if self.lean {
                    self.rest_incoming();
                }
            }
            // The reader has given credit when it found nothing.
            Link::Inproc(end) => end.give_room(),
        }
    }
}
