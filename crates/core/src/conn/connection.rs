//! The connection itself: two halves under locks, and flags through which the owner, the driver and
//! the I/O thread see each other.

use std::ops::ControlFlow;
use std::time::Duration;

use super::intake::{Intake, Newest, PeerRequests, ReadOutcome, Sink};
use super::link::{ConnectionEvent, IoSide, Loss, NewPipe, News, SharedStage, SocketInbox};
use super::pump::{ControlFrames, Flushed, FrameSource, PingPong, Pump};
use super::reader::Reader;
use crate::options::Options;
use tautline_io::lending::may_lend;
use tautline_io::net::{Family, Stream};
use tautline_io::reactor::{Interest, Token};
use tautline_proto::SocketType;
use tautline_queue::handoff::chore::{Hint, Mark};
use tautline_queue::handoff::wait_flag::WaitFlag;
use tautline_queue::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use tautline_queue::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use tautline_queue::sync::{Arc, Mutex, lock, try_lock};
use tautline_queue::{self as queue, FrameWriter, LatestMessage, Progress};
use tautline_timing::rules::{Rule, is_disabled};

mod liveness;
mod pause;
mod unseen;

pub(crate) use liveness::Liveness;
pub(crate) use unseen::FinishedHandshakes;
use unseen::UnseenEvents;

/// Bodies of at least this length are written directly from their memory if the queue is empty.
/// `THROUGH_SHALLOW` is for a Unix domain socket, `THROUGH_MEMORY` for shared memory, where a write
/// costs little.
const THROUGH_SHALLOW: u32 = 32 * 1024;
const THROUGH_MEMORY: u32 = 4 * 1024;
/// The smaller of the two limits.
pub(crate) const THROUGH_LEAST: usize = THROUGH_MEMORY as usize;

/// Properties of the socket type that a connection must know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionKind {
    /// Socket type.
    pub(crate) socket_type: SocketType,
    /// True if SUBSCRIBE, CANCEL, JOIN and LEAVE are delivered to the owner.
    pub(crate) takes_subscriptions: bool,
    /// True if the socket receives only replies that it awaits.
    pub(crate) takes_replies: bool,
    /// True for raw bytes without ZMTP.
    pub(crate) raw: bool,
    /// True if the queued messages are dropped when the peer is lost.
    pub(crate) forgets_on_reconnect: bool,
    /// True if messages of peers are received; otherwise they are dropped.
    pub(crate) receives: bool,
}

/// A session as the driver hands it over after the handshake.
pub(crate) struct Session {
    /// Stream of the session.
    pub(crate) stream: Arc<Stream>,
    /// The driver's name for the stream's registration.
    pub(crate) registration: Token,
    /// Transform between the queues and the wire.
    pub(crate) stage: Option<SharedStage>,
    /// Plain frames that came with the handshake.
    pub(crate) inbound: Vec<u8>,
    /// Wire bytes that came behind the handshake.
    pub(crate) leftover: Vec<u8>,
}

/// The I/O half of a pipe.
pub(crate) struct Connection {
    /// Properties of the socket type.
    pub(crate) kind: ConnectionKind,
    /// Options that were in force when the endpoint was bound or connected.
    pub(crate) options: Arc<Options>,
    /// News for the owner.
    pub(crate) inbox: Arc<SocketInbox>,
    /// Services of the I/O thread for this connection.
    pub(crate) io: Arc<dyn IoSide>,
    /// The owner's name for the pipe, plus one. 0 until the owner has attached the pipe.
    token: AtomicU32,
    /// True while a `News::Readable` is on its way.
    announced: AtomicBool,
    pub(crate) pump: Mutex<Pump>,
    pub(crate) intake: Mutex<Intake>,
    /// PING and PONG frames that wait for the pump.
    control: ControlFrames,
    /// Set after the I/O thread has written queued bytes. The owner takes it after it has published
    /// a message, and then looks at the clock.
    pub(crate) hint: Hint,
    /// True if the owner found the queue full and may wait on ZMQ_FD for room.
    wants_room: WaitFlag,
    /// Flush hint of the broadcast log that the peer follows, shared by all readers of the log, and
    /// the peer's progress. The log's counters add to those of the queue.
    pub(crate) followed: Mutex<Option<(Arc<Hint>, Arc<Progress>)>>,
    /// Set while the I/O thread's sweep will visit.
    pub(crate) sweep_mark: Mark,
    /// Set while the residual watch will visit.
    pub(crate) residual_mark: Mark,
    /// Time in ticks at which the owner last left a message queued or wrote one. The lowest bit is
    /// set if the owner predicts its next write.
    pub(super) worked_at: AtomicU64, // Relaxed: number: a write happens a little early or late.
    /// Index of the connection in the read set.
    pub(super) place: AtomicUsize, // Relaxed: own, under the lock of the members.
    /// True if reading has stopped at the receive high-water mark.
    pub(crate) paused: WaitFlag,
    /// True after the peer was seen to send no further bytes.
    pub(super) ended: AtomicBool, // Relaxed: number, for `idle_interest`; others load with Acquire.
    /// Length of the shortest body that is better written directly. `u32::MAX` for never.
    through_from: AtomicU32, // Relaxed: number: both ways to write are correct.
    /// True if the peer takes loans, as far as the connection has seen.
    pub(crate) lends: AtomicBool, // Relaxed: number: both ways to write are correct.
    /// True if there is a session that could send. Only a hint: it may change at any time.
    linked: AtomicBool, // Relaxed: number: the stream reports the truth in the end.
    /// Events that the owner has not seen yet.
    pub(crate) unseen: UnseenEvents,
    /// State for heartbeats.
    pub(crate) liveness: Liveness,
}

impl Connection {
    /// Returns a connection without a session, and the owner's ends of its queues.
    pub(crate) fn new(
        kind: ConnectionKind,
        options: Arc<Options>,
        inbox: Arc<SocketInbox>,
        io: Arc<dyn IoSide>,
    ) -> (Arc<Self>, NewPipe) {
        let (source, outgoing) = if options.conflates_outgoing() {
            let slot = Arc::new(LatestMessage::new());
            (FrameSource::Slot(slot.clone()), Err(slot))
        } else {
            let (mut writer, drain) = queue::outbound();
            writer.set_limit_in_steps(options.send_hwm);
            (FrameSource::Queue(drain), Ok(writer))
        };
        let (filler, mut reader) = queue::inbound();
        let (sink, incoming) = if options.conflates_incoming() {
            let slot = Arc::new(LatestMessage::new());
            let newest = Some(Box::new(Newest { slot: slot.clone(), reader }));
            (Sink { filler, newest }, Err(slot))
        } else {
            reader.set_credit_every(options.receive_hwm);
            (Sink { filler, newest: None }, Ok(reader))
        };
        let limit = if options.conflates_incoming() { 0 } else { options.receive_hwm };
        let intake = Intake::new(sink, limit, &options, kind);
        let pump = Pump::new(source, options.out_batch_size);
        let connection = Arc::new(Connection {
            kind,
            options,
            inbox,
            io,
            token: AtomicU32::new(0),
            announced: AtomicBool::new(false),
            pump: Mutex::new(pump),
            intake: Mutex::new(intake),
            control: ControlFrames::default(),
            hint: Hint::new(),
            wants_room: WaitFlag::new(),
            followed: Mutex::new(None),
            sweep_mark: Mark::new(),
            residual_mark: Mark::new(),
            worked_at: AtomicU64::new(0),
            place: AtomicUsize::new(0),
            paused: WaitFlag::new(),
            ended: AtomicBool::new(false),
            through_from: AtomicU32::new(u32::MAX),
            lends: AtomicBool::new(false),
            linked: AtomicBool::new(false),
            unseen: UnseenEvents::default(),
            liveness: Liveness::default(),
        });
        let pipe = NewPipe { connection: connection.clone(), outgoing, incoming, connected_here: false };
        (connection, pipe)
    }

    /// Driver: begins a session. `news` is delivered first. The caller flushes the queue.
    pub(crate) fn open(self: &Arc<Self>, number: u32, session: Session, news: Option<News>) {
        let mut asked = PeerRequests::default();
        let is_shallow = session.stream.family() == Family::Unix;
        self.through_from.store(if is_shallow { THROUGH_SHALLOW } else { u32::MAX }, Relaxed);
        self.lends.store(false, Relaxed);
        lock(&self.pump).open(
            number,
            session.stream.clone(),
            session.registration,
            session.stage.clone(),
            self.options.effective_hello_msg(),
        );
        self.linked.store(true, Relaxed);
        let took = {
            let mut intake = lock(&self.intake);
            intake.open(number, session.stream, session.stage);
            news.into_iter().for_each(|news| self.inbox.push(news));
            let took = intake.feed(&session.inbound, &session.leftover, &mut asked);
            self.pause_if_full(&mut intake, took, &mut asked)
        };
        // The bytes behind the handshake may be the only ones, so notify the owner in any case.
        self.handle_read(number, took, asked, None);
        self.announce();
    }

    /// Driver: ends the session, after the connection was removed from the read set.
    pub(crate) fn close(&self) {
        self.linked.store(false, Relaxed);
        lock(&self.pump).close(self.kind.forgets_on_reconnect);
        lock(&self.intake).close();
        self.control.clear();
        self.paused.lower();
        // Release pairs with the Acquire in `ReadSet::read_one`, which then sees that `linked` is
        // false.
        self.ended.store(false, Release);
        self.liveness.end_session();
    }

    /// Owner: names the pipe. News carry this name from now on.
    pub(crate) fn set_token(&self, token: u32) {
        self.token.store(token + 1, Release);
    }

    /// Returns the owner's name for the pipe, if there is one.
    pub(crate) fn token(&self) -> Option<u32> {
        self.token.load(Acquire).checked_sub(1)
    }

    /// Reports an event to the I/O thread.
    pub(crate) fn report(self: &Arc<Self>, event: ConnectionEvent) {
        self.io.clone().report(self.clone(), event);
    }

    // ---- writing

    /// Owner: stops reading the log. The unsent messages move to the connection's own queue, whose
    /// other end is `writer`.
    pub(crate) fn unfollow(self: &Arc<Self>, writer: &mut FrameWriter) {
        let moved = {
            let mut pump = lock(&self.pump);
            let moved = pump.unfollow(writer);
            pump.keep_little_unsent(false);
            moved
        };
        if !moved {
            self.lose_unsendable();
        }
    }

    /// Writes the queued bytes. Returns `None` if another thread is writing. Does not arm write
    /// interest.
    pub(crate) fn try_flush(self: &Arc<Self>) -> Option<Flushed> {
        self.flush_some(u64::MAX, None)
    }

    /// Writes queued bytes until not much more than `most` bytes are written, and then returns
    /// `Flushed::Partly`. Returns `None` if another thread is writing.
    ///
    /// The owner may give the `writer` of the queue, which then releases its memory if all bytes
    /// are written.
    pub(crate) fn flush_some(
        self: &Arc<Self>,
        most: u64,
        mut writer: Option<&mut FrameWriter>,
    ) -> Option<Flushed> {
        let mut result = None;
        loop {
            let (flushed, session) = match try_lock(&self.pump) {
                Ok(mut pump) => {
                    let flushed = pump.flush(most, &self.control);
                    self.note_memory(&pump);
                    if let (Flushed::Drained, Some(writer)) = (flushed, writer.as_deref_mut()) {
                        pump.release_memory(writer);
                    }
                    (flushed, pump.session)
                }
                Err(_) => return result,
            };
            result = Some(flushed);
            if !self.finish_flush(flushed, session) {
                return result;
            }
        }
    }

    /// Waits for another thread that is writing. Returns false if no thread is writing. The wait is
    /// short: no thread waits for the kernel under the pump's lock.
    pub(crate) fn await_others(&self) -> bool {
        let others = try_lock(&self.pump).is_err();
        if others {
            drop(lock(&self.pump));
        }
        others
    }

    /// True if `write_through` is better for a body of `len` bytes. Never true over TCP.
    pub(crate) fn writes_through(&self, len: usize) -> bool {
        len >= self.through_from.load(Relaxed) as usize && !is_disabled(Rule::WriteThrough)
    }

    /// Notes the first write to shared memory.
    #[inline]
    fn note_memory(&self, pump: &Pump) {
        if self.through_from.load(Relaxed) == THROUGH_SHALLOW && pump.has_memory() {
            self.through_from.store(THROUGH_MEMORY, Relaxed);
            self.lends.store(pump.lends(), Relaxed);
        }
    }

    /// Writes a message directly from its body if the queue is empty, and waits for the kernel for
    /// at most `patience`. `append` queues the message, or its unwritten part. Returns `None` if
    /// the message was queued without a write.
    pub(crate) fn write_through(
        self: &Arc<Self>,
        flags: u8,
        body: &[u8],
        patience: Option<Duration>,
        append: impl FnOnce() -> bool,
    ) -> Option<Flushed> {
        let (flushed, session) = match try_lock(&self.pump) {
            Ok(mut pump) => {
                let flushed = pump.write_through(flags, body, patience, append);
                if may_lend(body.len()) {
                    self.note_memory(&pump);
                }
                (flushed, pump.session)
            }
            Err(_) => {
                append();
                return None;
            }
        };
        let flushed = flushed?;
        if self.finish_flush(flushed, session) {
            // The message is written, whatever happens to a PING or PONG behind it.
            self.pump_now();
        }
        Some(flushed)
    }

    /// Called after the pump was unlocked. Returns true if another thread has added a control frame
    /// since. Reports a lost stream.
    pub(super) fn finish_flush(self: &Arc<Self>, flushed: Flushed, session: u32) -> bool {
        if let Flushed::Lost(errno) = flushed {
            if lock(&self.pump).fail(session) {
                self.linked.store(false, Relaxed);
            }
            self.report(ConnectionEvent::Unwritable(session, errno));
            return false;
        }
        // A thread in `ControlFrames::add` sees the unlocked pump, or its frame is seen here.
        matches!(flushed, Flushed::Drained) && self.control.waiting.is_raised_now()
    }

    /// Writes the queued bytes of an owner that may be away. Arms write interest if the kernel is
    /// full, and reports room to the owner. Returns `None` if another thread is writing, or if the
    /// residual timer will write.
    pub(crate) fn pump_now(self: &Arc<Self>) -> Option<Flushed> {
        let flushed = self.try_flush();
        match flushed {
            Some(Flushed::Blocked) if !self.want_write() => return None,
            Some(Flushed::Drained) => self.notify_room(),
            _ => {}
        }
        flushed
    }

    /// Owner: notes that the queue is full. The thread that writes the queue will report room. The
    /// owner must look at the queue once more after this call.
    pub(crate) fn request_room(&self) {
        // The writing thread gives credit, then looks at the flag, with the fence in `has_more`
        // between.
        self.wants_room.raise();
    }

    /// Called when all bytes are written. Wakes an owner that waits for room on ZMQ_FD, but not a
    /// blocking send.
    pub(crate) fn notify_room(&self) {
        if self.wants_room.take() {
            self.inbox.wake_if_parked();
        }
    }

    /// I/O thread: writes the queued bytes after an event that will not repeat (a writable buffer,
    /// a new session). Another thread that is writing may rely on this event, because an owner that
    /// looks for room arms no write interest. Then the residual timer writes the remaining bytes.
    pub(crate) fn pump_writable(self: &Arc<Self>) -> Option<Flushed> {
        let flushed = self.pump_now();
        if flushed.is_none() {
            self.watch_residual(true);
        }
        flushed
    }

    /// Makes the I/O thread pump when the kernel takes bytes again. Returns false if the residual
    /// timer does it instead.
    pub(crate) fn want_write(self: &Arc<Self>) -> bool {
        let wanted = match lock(&self.pump).stream() {
            Some((stream, registration)) => self.io.want_write(stream, registration, self.idle_interest()),
            None => true,
        };
        if !wanted {
            self.watch_residual(true);
        }
        wanted
    }

    /// True if bytes wait to be written. Tries the pump's lock; also true if another thread holds
    /// it.
    pub(crate) fn has_pending(&self) -> bool {
        self.control.waiting.is_raised()
            || match try_lock(&self.pump) {
                Ok(mut pump) => pump.has_pending(),
                Err(_) => true,
            }
    }

    /// True if bytes wait to be written. Waits for a thread that is writing.
    pub(crate) fn has_unsent(&self) -> bool {
        self.control.waiting.is_raised() || lock(&self.pump).has_pending()
    }

    /// Returns the stream on which to wait for room, if a session is open.
    pub(crate) fn writable_stream(&self) -> Option<Arc<Stream>> {
        lock(&self.pump).stream().map(|(stream, _)| stream.clone())
    }

    /// True if there is now a session that could send.
    pub(crate) fn is_linked(&self) -> bool {
        self.linked.load(Relaxed)
    }

    /// Sends a control frame, which `put` adds, at the next message boundary.
    pub(crate) fn send_control(self: &Arc<Self>, put: impl FnOnce(&mut PingPong)) {
        self.control.add(put);
        self.pump_now();
    }

    /// True if bytes go through shared memory, as far as the connection has seen.
    pub(crate) fn shares_memory(&self) -> bool {
        match self.through_from.load(Relaxed) {
            THROUGH_MEMORY => true,
            // Not a Unix domain socket.
            u32::MAX => false,
            _ => try_lock(&self.intake).is_ok_and(|intake| intake.reads_from_memory()),
        }
    }

    // ---- reading

    /// Holder of the baton: reads once. `Break` if the session is over; the caller then removes the
    /// connection from the read set.
    pub(super) fn read(self: &Arc<Self>, by: Reader<'_>) -> ControlFlow<(), ReadOutcome> {
        #[cfg(test)]
        assert_ne!(self.options.routing_id, b"panics as it reads");
        let (arrived, times) = match by {
            Reader::Any => (None, 1),
            Reader::Owner(arrived, times) => (Some(arrived), times),
        };
        let mut asked = PeerRequests::default();
        let (took, session) = {
            let mut intake = lock(&self.intake);
            let mut tries = (1..times).take_while(|_| !self.inbox.has_pending());
            let took = match intake.read_patiently(&mut asked, || tries.next().is_some()) {
                full @ ReadOutcome::Full { .. } => self.pause_if_full(&mut intake, full, &mut asked),
                took => took,
            };
            (took, intake.session)
        };
        match arrived {
            // The usual case: only messages.
            Some(arrived) if took == (ReadOutcome::Bytes { published: true }) && asked.is_nothing() => {
                self.liveness.record_arrival();
                arrived.extend(self.token());
            }
            arrived => self.handle_read(session, took, asked, arrived),
        }
        if matches!(took, ReadOutcome::Lost(_)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(took)
        }
    }

    /// Holder of the baton, or owner: ends the session, because the stream must not be read again.
    pub(crate) fn lose(self: &Arc<Self>, errno: i32) {
        let session = lock(&self.intake).session;
        self.handle_read(session, ReadOutcome::Lost(Loss::Stream(errno)), PeerRequests::default(), None);
    }

    fn handle_read(
        self: &Arc<Self>,
        session: u32,
        took: ReadOutcome,
        asked: PeerRequests,
        arrived: Option<&mut Vec<u32>>,
    ) {
        if took != ReadOutcome::Nothing {
            self.liveness.record_arrival();
        }
        if self.liveness.grant(asked.ttl_ds) {
            self.report(ConnectionEvent::GrantedTtl(session));
        }
        if !asked.pongs.is_empty() {
            self.send_control(|frames| frames.pongs = asked.pongs);
        }
        if asked.signs & PeerRequests::PONG != 0 {
            self.liveness.note_pong();
        }
        if asked.signs & PeerRequests::ANSWER != 0 {
            // Pump even if the session is over, because the peer may wait for the final answer.
            self.pump_now();
        }
        if matches!(took, ReadOutcome::Full { .. }) && self.idle_interest() != Interest::NONE {
            self.want_write();
        }
        match took {
            ReadOutcome::Bytes { published: true } | ReadOutcome::Full { published: true } => match arrived {
                Some(arrived) => arrived.extend(self.token()),
                None => self.announce(),
            },
            ReadOutcome::Lost(why) => {
                self.ended.store(true, Relaxed);
                // Messages that were complete before the end can still be received.
                self.announce();
                self.report(ConnectionEvent::Ended(session, why));
            }
            _ => {}
        }
    }

    fn announce(&self) {
        // AcqRel pairs with the swap in `acknowledge_readable`: the second thread sees the other's
        // stores.
        if !self.announced.swap(true, AcqRel)
            && let Some(token) = self.token()
        {
            self.inbox.push(News::Readable(token));
        }
    }

    /// Owner: called when `News::Readable` has come, or when the pipe was just attached. Messages
    /// that are published from now on are announced again.
    pub(crate) fn acknowledge_readable(&self) {
        self.announced.swap(false, AcqRel);
    }
}

#[cfg(test)]
mod tests;
