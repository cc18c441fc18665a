//! The connection itself: two halves under locks, and flags by which the roles see each other.

use std::ops::ControlFlow;
use std::time::Duration;

use super::chore::{Hint, Mark};
use super::intake::{Asked, Intake, Newest, Sink, Took};
use super::link::{IoSide, Loss, NewPipe, News, SharedStage, SocketInbox};
use super::pump::{Flushed, Pump, Source};
use super::reader::By;
use crate::ablation::{Rule, without};
use crate::options::Options;
use crate::queue::{self, FrameReader, FrameWriter, LogReader, Slot};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
use crate::sync::{Arc, Mutex, lock, try_lock};
use tautline_io::net::{Family, Stream};
use tautline_io::reactor::{Interest, Token};
use tautline_proto::SocketType;

mod control;
mod later;
mod pause;
mod shown;
mod signs;
mod unseen;

use control::Control;
use shown::Shown;
pub(crate) use shown::unsent;
pub(crate) use signs::Signs;
pub(crate) use unseen::Meeting;
use unseen::Unseen;

/// Bodies from this length on are written from where they are, if nothing is queued: to a Unix
/// domain socket, and to shared memory, where a write costs little.
const THROUGH_SHALLOW: u32 = 32 * 1024;
const THROUGH_MEMORY: u32 = 4 * 1024;
/// The least of them.
pub(crate) const THROUGH_LEAST: usize = THROUGH_MEMORY as usize;

/// This many looks at shared memory take about as long as one at a descriptor.
const LOOKS_AT_MEMORY: u32 = 8;

/// What a connection must know of the socket type it works for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The type.
    pub(crate) socket_type: SocketType,
    /// SUBSCRIBE, CANCEL, JOIN and LEAVE are delivered to the owner.
    pub(crate) takes_subscriptions: bool,
    /// Only replies come, and none is received that is not awaited.
    pub(crate) takes_replies: bool,
    /// No ZMTP: bytes as they are.
    pub(crate) raw: bool,
    /// Drop what is queued when the peer is lost.
    pub(crate) forgets_on_reconnect: bool,
    /// Messages of peers are received; else they are dropped.
    pub(crate) receives: bool,
}

/// A session as the driver hands it over after the handshake.
pub(crate) struct Session {
    /// The stream.
    pub(crate) stream: Arc<Stream>,
    /// The driver's name for its registration.
    pub(crate) registration: Token,
    /// What lies between the queues and the wire.
    pub(crate) stage: Option<SharedStage>,
    /// Plain frames that came with the handshake.
    pub(crate) inbound: Vec<u8>,
    /// Wire bytes that came behind the handshake.
    pub(crate) leftover: Vec<u8>,
}

/// The I/O half of a pipe.
pub(crate) struct Connection {
    /// The socket type's traits.
    pub(crate) kind: Kind,
    /// The options in force when the endpoint was bound or connected.
    pub(crate) options: Arc<Options>,
    inbox: Arc<SocketInbox>,
    io: Arc<dyn IoSide>,
    /// The owner's name for the pipe, plus one; 0 until the owner has attached it.
    token: AtomicU32,
    /// `News::Readable` is on its way.
    announced: AtomicBool,
    pump: Mutex<Pump>,
    intake: Mutex<Intake>,
    /// PING and PONG frames that wait for the pump. Boxed: thousands of connections have none.
    control: Mutex<Option<Box<Control>>>,
    has_control: AtomicBool, // Relaxed: fence, by `has_more` and `send_control`; the swap decides.
    /// The I/O thread has flushed: the owner's next message looks at the clock.
    hint: Hint,
    /// The owner found the queue full, and may wait on ZMQ_FD for room.
    wants_room: AtomicBool, // Relaxed: fence, by `want_room` and `has_more`; the swap decides.
    /// The same for the log that it reads, and all others that read it.
    shared_hint: Mutex<Option<Arc<Hint>>>,
    /// The I/O thread's sweep comes by.
    pub(crate) swept: Mark,
    /// The residual watch does.
    pub(crate) watched: Mark,
    /// When the owner last left something queued or wrote it (ticks); lowest bit: foreseen.
    worked_at: AtomicU64, // Relaxed: number: something is written a little early or late.
    /// Its place in the read set.
    pub(super) place: AtomicUsize, // Relaxed: own, under the lock of the members.
    /// Reading has stopped at the receive high-water mark.
    paused: AtomicBool, // Relaxed: fence, of `pause_if_full` and `found_empty`.
    /// The peer was seen to send nothing more.
    ended: AtomicBool, // Relaxed: number, for `idle_interest`; `is_over` loads with Acquire.
    /// Bodies from this length on are better written from where they are (`u32::MAX`: none).
    through_from: AtomicU32, // Relaxed: number: the other way to write is as right.
    /// There is a session that could send. A hint: it may change at any time.
    linked: AtomicBool, // Relaxed: number: the stream tells in the end.
    unseen: Unseen,
    shown: Shown,
    /// What heartbeats need to know.
    pub(crate) signs: Signs,
}

impl Connection {
    /// A connection without a session, and the owner's ends of its queues.
    pub(crate) fn new(
        kind: Kind,
        options: Arc<Options>,
        inbox: Arc<SocketInbox>,
        io: Arc<dyn IoSide>,
    ) -> (Arc<Self>, NewPipe) {
        let (source, outgoing) = if options.conflates_outgoing() {
            let slot = Arc::new(Slot::new());
            (Source::Slot(slot.clone()), Err(slot))
        } else {
            let (mut writer, drain) = queue::outbound();
            writer.set_limit_in_steps(options.send_hwm);
            (Source::Queue(drain), Ok(writer))
        };
        let (filler, mut reader) = queue::inbound();
        let (sink, incoming) = if options.conflates_incoming() {
            let slot = Arc::new(Slot::new());
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
            control: Mutex::default(),
            has_control: AtomicBool::new(false),
            hint: Hint::new(),
            wants_room: AtomicBool::new(false),
            shared_hint: Mutex::new(None),
            swept: Mark::new(),
            watched: Mark::new(),
            worked_at: AtomicU64::new(0),
            place: AtomicUsize::new(0),
            paused: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            through_from: AtomicU32::new(u32::MAX),
            linked: AtomicBool::new(false),
            unseen: Unseen::default(),
            shown: Shown::default(),
            signs: Signs::default(),
        });
        let pipe = NewPipe { connection: connection.clone(), outgoing, incoming, connected_here: false };
        (connection, pipe)
    }

    /// Driver: a session begins. `news` goes first. The caller flushes what is queued.
    pub(crate) fn open(self: &Arc<Self>, number: u32, session: Session, news: Option<News>) {
        let mut asked = Asked::default();
        let is_shallow = session.stream.family() == Family::Unix;
        self.through_from.store(if is_shallow { THROUGH_SHALLOW } else { u32::MAX }, Relaxed);
        lock(&self.pump).open(
            number,
            session.stream.clone(),
            session.registration,
            session.stage.clone(),
            self.options.hello(),
        );
        self.linked.store(true, Relaxed);
        let took = {
            let mut intake = lock(&self.intake);
            intake.open(number, session.stream, session.stage);
            news.into_iter().for_each(|news| self.inbox.push(news));
            let took = intake.feed(&session.inbound, &session.leftover, &mut asked);
            self.pause_if_full(&mut intake, took, &mut asked)
        };
        // Bytes behind the handshake may be all there is, so the owner is told in any case.
        self.took(number, took, asked, None);
        self.announce();
    }

    /// Driver: the session has ended (after the connection was taken out of the read set).
    pub(crate) fn close(&self) {
        self.linked.store(false, Relaxed);
        lock(&self.pump).close(self.kind.forgets_on_reconnect);
        lock(&self.intake).close();
        *lock(&self.control) = None;
        self.has_control.store(false, Release);
        self.paused.store(false, Relaxed);
        // Release pairs with the Acquire in `is_over`, which then sees that nothing is linked.
        self.ended.store(false, Release);
        self.signs.end_session();
    }

    /// Owner: names the pipe; news carry the name from now on.
    pub(crate) fn set_token(&self, token: u32) {
        self.token.store(token + 1, Release);
    }

    /// The owner's name for the pipe, if it has one.
    pub(crate) fn token(&self) -> Option<u32> {
        self.token.load(Acquire).checked_sub(1)
    }

    /// Tells the owner something.
    pub(crate) fn push_news(&self, news: News) {
        self.inbox.push(news);
    }

    /// Owner: has no use for this connection any more.
    pub(crate) fn give_up(self: &Arc<Self>) {
        self.io.clone().give_up(self.clone());
    }

    // ---- writing

    /// Owner: reads a log from now on, unless something is queued. `hint` is the log's.
    pub(crate) fn follow(&self, log: LogReader, hint: &Arc<Hint>) -> bool {
        let follows = lock(&self.pump).follow(log);
        if follows {
            *lock(&self.shared_hint) = Some(hint.clone());
        }
        follows
    }

    /// Owner: no longer. What is not sent goes to its own queue, whose end is `writer`.
    pub(crate) fn unfollow(self: &Arc<Self>, writer: &mut FrameWriter) {
        let moved = {
            let mut pump = lock(&self.pump);
            let moved = pump.unfollow(writer);
            pump.keep_little_unsent(false);
            moved
        };
        *lock(&self.shared_hint) = None;
        if !moved {
            self.lose_unsendable();
        }
    }

    /// Owner: whether what the peer does not read is to stay here, and not in the kernel. Left as
    /// it is if another thread writes just now.
    pub(crate) fn keep_little_unsent(&self, little: bool) {
        if let Ok(mut pump) = try_lock(&self.pump) {
            pump.keep_little_unsent(little);
        }
    }

    #[cfg(test)]
    pub(crate) fn keeps_little_unsent(&self) -> bool {
        lock(&self.pump).keeps_little_unsent()
    }

    /// What the I/O thread does for this connection.
    pub(crate) fn io_side(&self) -> Arc<dyn IoSide> {
        self.io.clone()
    }

    /// Writes what is queued, if no other thread is writing (`None`). Does not arm write interest.
    pub(crate) fn try_flush(self: &Arc<Self>) -> Option<Flushed> {
        self.flush_with(u64::MAX, None, &mut 0)
    }

    /// As `try_flush`, but not much more than `most` bytes of the queue: then `Flushed::Partly`.
    /// What the kernel has taken is added to `taken`.
    pub(crate) fn flush_some(self: &Arc<Self>, most: u64, taken: &mut u64) -> Option<Flushed> {
        self.flush_with(most, None, taken)
    }

    /// Owner: as `try_flush`. If all is written the queue, `writer`'s, gives up its memory.
    pub(crate) fn flush_and_rest(self: &Arc<Self>, writer: &mut FrameWriter) -> Option<Flushed> {
        self.flush_with(u64::MAX, Some(writer), &mut 0)
    }

    fn flush_with(
        self: &Arc<Self>,
        most: u64,
        mut writer: Option<&mut FrameWriter>,
        taken: &mut u64,
    ) -> Option<Flushed> {
        let mut result = None;
        loop {
            let (flushed, session) = match try_lock(&self.pump) {
                Ok(mut pump) => {
                    let before = pump.taken.bytes;
                    let flushed = pump.flush(most, &mut |out| self.take_control(out));
                    if pump.has_memory() {
                        self.through_from.store(THROUGH_MEMORY, Relaxed);
                    }
                    *taken += pump.taken.bytes.wrapping_sub(before);
                    if let (Flushed::Drained, Some(writer)) = (flushed, writer.as_deref_mut()) {
                        pump.rest(writer);
                    }
                    (flushed, pump.session)
                }
                Err(_) => return result,
            };
            result = Some(flushed);
            if !self.has_more(flushed, session) {
                return result;
            }
        }
    }

    /// As `try_flush`, but waits for a thread that is writing.
    pub(crate) fn flush_after_others(self: &Arc<Self>) {
        if self.try_flush().is_none() {
            self.await_others();
            self.try_flush();
        }
    }

    /// Waits for a thread that writes; false if none does. None waits for the kernel with the lock.
    pub(crate) fn await_others(&self) -> bool {
        let others = self.is_being_written();
        if others {
            drop(lock(&self.pump));
        }
        others
    }

    /// Whether `write_through` is the better way for a body of `len` bytes. Over TCP it is not.
    pub(crate) fn writes_through(&self, len: usize) -> bool {
        len >= self.through_from.load(Relaxed) as usize && !without(Rule::WriteThrough)
    }

    /// Writes a message straight from its body if nothing is queued before it, waiting for the
    /// kernel for at most `patience`. `append` queues it, or what is left of it. `None`: queued,
    /// and not tried.
    pub(crate) fn write_through(
        self: &Arc<Self>,
        flags: u8,
        body: &[u8],
        patience: Option<Duration>,
        append: impl FnOnce() -> bool,
    ) -> Option<Flushed> {
        let (flushed, session) = match try_lock(&self.pump) {
            Ok(mut pump) => (pump.write_through(flags, body, patience, append), pump.session),
            Err(_) => {
                append();
                return None;
            }
        };
        let flushed = flushed?;
        if self.has_more(flushed, session) {
            // The message has gone, whatever becomes of a PING or PONG behind it.
            self.pump_now();
        }
        Some(flushed)
    }

    /// After the pump was unlocked: has a control frame come meanwhile? Reports a lost stream.
    fn has_more(self: &Arc<Self>, flushed: Flushed, session: u32) -> bool {
        if let Flushed::Lost(errno) = flushed {
            if lock(&self.pump).fail(session) {
                self.linked.store(false, Relaxed);
            }
            self.io.clone().unwritable(self.clone(), session, errno);
            return false;
        }
        // Pairs with the fence in `send_control`: its frame is seen here, or the unlocked pump
        // there.
        fence(SeqCst);
        flushed == Flushed::Drained && self.has_control.load(Relaxed)
    }

    /// Flushes for an owner that may be away: arms write interest if the kernel is full, and tells
    /// the owner of room. `None`: another thread writes, or the residual timer will.
    pub(crate) fn pump_now(self: &Arc<Self>) -> Option<Flushed> {
        let flushed = self.try_flush();
        match flushed {
            Some(Flushed::Blocked) if !self.want_write() => return None,
            Some(Flushed::Drained) => self.tell_room(),
            _ => {}
        }
        flushed
    }

    /// Owner: the queue is full, the thread that writes it tells of room. Look once more then.
    pub(crate) fn want_room(&self) {
        self.wants_room.store(true, Relaxed);
        // Store the wish, then load the credit. The writing thread gives credit, then loads the
        // wish (with the fence in `has_more` between).
        fence(SeqCst);
    }

    /// All was written: wakes an owner that waits for room on ZMQ_FD, not a blocking send.
    pub(crate) fn tell_room(&self) {
        if self.wants_room.load(Relaxed) && self.wants_room.swap(false, AcqRel) {
            self.inbox.nudge();
        }
    }

    /// I/O thread: as `pump_now`, at a moment that does not come again, such as that the kernel
    /// takes bytes again, or that a session begins. A thread that writes just now may count on it:
    /// an owner that looks for room arms nothing. The residual timer looks after what is left then.
    pub(crate) fn pump_writable(self: &Arc<Self>) -> Option<Flushed> {
        let flushed = self.pump_now();
        if flushed.is_none() {
            self.watch_residual();
        }
        flushed
    }

    /// Has the I/O thread pump when the kernel takes bytes again. False: the residual timer does.
    pub(crate) fn want_write(self: &Arc<Self>) -> bool {
        let wanted = match lock(&self.pump).stream() {
            Some((stream, registration)) => self.io.want_write(stream, registration, self.idle_interest()),
            None => true,
        };
        if !wanted {
            self.watch_residual();
        }
        wanted
    }

    /// Whether something waits to be written. Takes the pump's lock; true if it is held.
    pub(crate) fn has_pending(&self) -> bool {
        self.has_control.load(Acquire)
            || match try_lock(&self.pump) {
                Ok(mut pump) => pump.pending(),
                Err(_) => true,
            }
    }

    /// Whether a thread is writing just now.
    pub(crate) fn is_being_written(&self) -> bool {
        try_lock(&self.pump).is_err()
    }

    /// Grows with every write that the kernel has taken.
    pub(crate) fn writes(&self) -> u32 {
        lock(&self.pump).taken.writes
    }

    /// The stream to wait on for room, if a session is open.
    pub(crate) fn writable_stream(&self) -> Option<Arc<Stream>> {
        lock(&self.pump).stream().map(|(stream, _)| stream.clone())
    }

    /// Whether there is a session that could send, just now.
    pub(crate) fn is_linked(&self) -> bool {
        self.linked.load(Relaxed)
    }

    // ---- reading

    /// Holder of the baton: reads once. `Break`: the session is over, leave the read set.
    pub(super) fn read(self: &Arc<Self>, by: By<'_>) -> ControlFlow<(), Took> {
        #[cfg(test)]
        assert_ne!(self.options.routing_id, b"panics as it reads");
        let (arrived, times) = match by {
            By::Any => (None, 1),
            By::Owner(arrived, times) => (Some(arrived), times),
        };
        let mut asked = Asked::default();
        let (took, session) = {
            let mut intake = lock(&self.intake);
            let times = if times > 1 && intake.reads_from_memory() && !without(Rule::Looks) {
                times * LOOKS_AT_MEMORY
            } else {
                times
            };
            let mut tries = (1..times).take_while(|_| !self.inbox.pending());
            let took = match intake.read_patiently(&mut asked, || tries.next().is_some()) {
                full @ Took::Full { .. } => self.pause_if_full(&mut intake, full, &mut asked),
                took => took,
            };
            (took, intake.session)
        };
        match arrived {
            // The usual case: nothing but messages.
            Some(arrived) if took == (Took::Bytes { published: true }) && asked.is_nothing() => {
                self.signs.arrived();
                arrived.extend(self.token());
            }
            arrived => self.took(session, took, asked, arrived),
        }
        if matches!(took, Took::Lost(_)) { ControlFlow::Break(()) } else { ControlFlow::Continue(took) }
    }

    /// Holder of the baton, or owner: the stream is not to be read any more.
    pub(crate) fn lose(self: &Arc<Self>, errno: i32) {
        let session = lock(&self.intake).session;
        self.took(session, Took::Lost(Loss::Stream(errno)), Asked::default(), None);
    }

    fn took(self: &Arc<Self>, session: u32, took: Took, asked: Asked, arrived: Option<&mut Vec<u32>>) {
        if took != Took::Nothing {
            self.signs.arrived();
        }
        if self.signs.grant(asked.ttl_ds) {
            self.io.clone().granted_ttl(self.clone(), session);
        }
        if !asked.pongs.is_empty() {
            self.send_pongs(asked.pongs);
        }
        if asked.signs & Asked::PONG != 0 {
            self.note_pong();
        }
        if asked.signs & Asked::ANSWER != 0 {
            // Also if the session is over: the peer may wait for the last word.
            self.pump_now();
        }
        if matches!(took, Took::Full { .. }) && self.idle_interest() != Interest::NONE {
            self.want_write();
        }
        match took {
            Took::Bytes { published: true } | Took::Full { published: true } => match arrived {
                Some(arrived) => arrived.extend(self.token()),
                None => self.announce(),
            },
            Took::Lost(why) => {
                self.ended.store(true, Relaxed);
                // What came whole before the end is there to be received.
                self.announce();
                self.io.clone().lost(self.clone(), session, why);
            }
            _ => {}
        }
    }

    fn announce(&self) {
        // AcqRel pairs with the same in `heard`: the second thread sees the other's side.
        if !self.announced.swap(true, AcqRel)
            && let Some(token) = self.token()
        {
            self.inbox.push(News::Readable(token));
        }
    }

    /// Owner: `News::Readable` has come (or the pipe was just attached); what is published from now
    /// on is announced anew.
    pub(crate) fn heard(&self) {
        self.announced.swap(false, AcqRel);
    }

    /// Owner: one connection of many: it holds no memory while it is idle.
    pub(crate) fn set_lean(&self) {
        lock(&self.intake).set_lean();
    }

    /// Owner, which has found nothing to read: the queue, whose other end is `reader`, gives up its
    /// memory, unless it is being read into.
    pub(crate) fn rest_incoming(&self, reader: &mut FrameReader) {
        if let Ok(mut intake) = try_lock(&self.intake) {
            intake.rest(reader);
        }
    }

    /// Owner: ZMQ_RCVHWM has changed.
    pub(crate) fn set_receive_limit(&self, limit: u32) {
        lock(&self.intake).set_limit(limit);
    }

    /// The stream to wait on for data, if a session is open and reading is not paused.
    pub(super) fn readable_stream(&self) -> Option<Arc<Stream>> {
        lock(&self.intake).stream().cloned()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
