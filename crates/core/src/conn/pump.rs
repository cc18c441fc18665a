//! The write half of a connection: moves frames from the outbound queue to the kernel, whole
//! segments at a time.
//!
//! Runs on the thread that holds the pump's lock: the sender (inline, by the flush rule or at the
//! high-water mark) or the I/O thread (residuals, a full kernel buffer, linger). If the peer's
//! protocol or mechanism needs a stage, it is applied here, in wire order.

use super::link::SharedStage;
use super::room::wait_for_room;
use crate::error::{NoMemory, check_shortage};
use std::io::{ErrorKind, IoSlice};
use std::time::Duration;
use tautline_io::errno;
use tautline_io::net::Stream;
use tautline_io::reactor::Token;
use tautline_proto::frame;
use tautline_queue::handoff::wait_flag::WaitFlag;
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_queue::{ByteDrain, FrameWriter, LatestMessage, LogReader};
use tautline_timing::SEGMENT;
use tautline_timing::rules::{Rule, is_disabled};

/// Limit for the slices of one write.
const SLICES: usize = 8;

/// Source of the frames to write: the connection's queue, or the slot of ZMQ_CONFLATE.
pub(super) enum FrameSource {
    Queue(ByteDrain),
    Slot(Arc<LatestMessage>),
}

/// Result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The kernel has all published bytes.
    Drained,
    /// The kernel's buffer is full.
    Blocked,
    /// The kernel has as many bytes as requested, and may take more.
    Partly,
    /// There is no stream now, or the stream takes no further bytes. All bytes stay queued.
    NoLink,
    /// The stream has failed with this errno.
    Lost(i32),
}

/// Control frames of the connection itself: PING and PONG (RFC 37). A newer frame replaces a
/// waiting one. So memory does not grow if a peer sends PINGs and does not read.
#[derive(Debug, Default)]
pub(crate) struct PingPong {
    /// Our PING.
    pub(crate) ping: Vec<u8>,
    /// The PONGs that answer the PINGs of one read.
    pub(super) pongs: Vec<u8>,
}

/// Control frames that wait for the pump. Boxed, because few connections have any.
#[derive(Default)]
pub(super) struct ControlFrames {
    pub(super) frames: Mutex<Option<Box<PingPong>>>,
    /// Raised while frames wait.
    pub(super) waiting: WaitFlag,
}

impl ControlFrames {
    /// Adds a frame, with `put`. The caller then tries to write it.
    pub(super) fn add(&self, put: impl FnOnce(&mut PingPong)) {
        put(lock(&self.frames).get_or_insert_default());
        // The caller then tries the pump's lock. A writing thread unlocks, then looks.
        self.waiting.raise();
    }

    /// Pump, at a message boundary: takes the waiting frames.
    fn take(&self) -> Vec<u8> {
        if !self.waiting.take() {
            return Vec::new();
        }
        let frames = lock(&self.frames).take().unwrap_or_default();
        [frames.ping, frames.pongs].concat()
    }

    /// Drops the waiting frames, because the session is over.
    pub(super) fn clear(&self) {
        *lock(&self.frames) = None;
        self.waiting.lower();
    }
}

/// The write half. Behind the connection's pump lock.
pub(crate) struct Pump {
    source: FrameSource,
    /// Log of the messages that go to many peers, while this peer keeps up (`pipe::Broadcast`). The
    /// log follows the bytes in the queue. While there is a log, the owner adds no messages to the
    /// queue.
    log: Option<Box<LogReader>>,
    stream: Option<Arc<Stream>>,
    stage: Option<SharedStage>,
    /// Bytes that are written first: sealed by the stage, control frames, or the rest of a
    /// conflated message.
    staged: Vec<u8>,
    /// Number of staged bytes that are written.
    written: usize,
    /// Number of messages before the last one that the end of a session has cut.
    cut: Option<u64>,
    /// Limit for the bytes of one write of frames.
    batch: usize,
    /// Number of the session that the stream belongs to.
    pub(super) session: u32,
    /// True if the kernel was asked to take few bytes that the peer has no room for.
    little_unsent: bool,
    /// The driver's name for the stream's registration.
    registration: Token,
    pub(crate) taken: Taken,
}

/// Numbers of writes and bytes that the kernel has taken.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Taken {
    /// Grows with every write that the kernel has taken.
    pub(crate) writes: u32,
    pub(super) bytes: u64,
}

impl Taken {
    fn add(&mut self, bytes: usize) {
        self.writes = self.writes.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes as u64);
    }
}

impl Pump {
    pub(super) fn new(source: FrameSource, batch: Option<u32>) -> Self {
        Pump {
            source,
            log: None,
            stream: None,
            stage: None,
            staged: Vec::new(),
            written: 0,
            cut: None,
            batch: batch.map_or(usize::MAX, |bytes| bytes as usize),
            session: 0,
            little_unsent: false,
            registration: Token(0),
            taken: Taken::default(),
        }
    }

    /// Begins a session. Its first message is `hello`, unless that is empty.
    pub(super) fn open(
        &mut self,
        session: u32,
        stream: Arc<Stream>,
        registration: Token,
        stage: Option<SharedStage>,
        hello: &[u8],
    ) {
        self.session = session;
        self.little_unsent = false;
        self.registration = registration;
        self.stream = Some(stream);
        self.stage = stage;
        self.staged.clear();
        self.written = 0;
        if !hello.is_empty() {
            let mut plain = Vec::new();
            put_frame(0, hello, &mut plain);
            // If there is no memory for it, the stage remembers this and the first flush ends the
            // session.
            let _ = self.put(&plain);
        }
    }

    /// Notes that the stream of this session takes no further bytes. No bytes are written until the
    /// next session. Returns false if the next session has already begun.
    pub(super) fn fail(&mut self, session: u32) -> bool {
        let current = self.session == session;
        if current {
            self.stream = None;
        }
        current
    }

    /// Ends the session. A partly written message is kept as a whole for the next session. If two
    /// sessions in a row end within one message, it is dropped: the peer may refuse it. If `forget`
    /// is set, all messages are dropped.
    pub(super) fn close(&mut self, forget: bool) {
        self.say_goodbye();
        self.stream = None;
        self.stage = None;
        self.staged = Vec::new();
        self.written = 0;
        if let FrameSource::Queue(drain) = &mut self.source {
            if forget {
                drain.discard();
            } else {
                let cut = drain.cut();
                drain.rewind();
                if cut.is_some() && cut == self.cut {
                    drain.drop_first();
                }
                self.cut = cut.or(self.cut);
            }
        }
        if let Some(log) = &mut self.log {
            if forget { log.discard() } else { log.rewind() }
        }
    }

    /// Reads the log as well from now on, unless other bytes must be sent first. Returns true if it
    /// reads the log.
    pub(crate) fn follow(&mut self, log: LogReader) -> bool {
        let FrameSource::Queue(drain) = &mut self.source else { return false };
        let idle = self.log.is_none() && drain.pending() == 0;
        if idle {
            self.log = Some(Box::new(log));
        }
        idle
    }

    /// Stops reading the log. The unsent messages move to the queue, whose other end is `writer`.
    /// Returns false if there was no memory and the peer has received a part of a message.
    pub(super) fn unfollow(&mut self, writer: &mut FrameWriter) -> bool {
        if let (Some(log), FrameSource::Queue(drain)) = (self.log.take(), &mut self.source) {
            let mut moved = true;
            let (messages, written) = log.copy_unsent(|frames| {
                moved = moved && writer.append_encoded(frames).is_ok();
            });
            if !moved {
                writer.rollback();
                return written == 0;
            }
            if messages > 0 {
                writer.publish_many(messages);
                drain.pending();
                drain.advance(written);
            }
        }
        true
    }

    /// If `little` is set, bytes that the peer has no room for stay in our queue and not in the
    /// kernel.
    pub(crate) fn keep_little_unsent(&mut self, little: bool) {
        if self.little_unsent != little
            && !is_disabled(Rule::LittleUnsent)
            && let Some(stream) = &self.stream
        {
            self.little_unsent = little;
            // Only an optimisation: without it, more bytes lie in the kernel.
            let _ = stream.limit_unsent(little.then_some(SEGMENT as u32));
        }
    }

    #[cfg(test)]
    pub(crate) fn keeps_little_unsent(&self) -> bool {
        self.little_unsent
    }

    /// Writes the closing bytes of the stage (a close frame of WebSocket, for example), if there is
    /// a stage. Drops the bytes that the kernel does not take at once.
    fn say_goodbye(&mut self) {
        if let (Some(stream), Some(stage)) = (&self.stream, &self.stage)
            && self.written == self.staged.len()
        {
            let mut last = Vec::new();
            lock(stage).close(&mut last);
            if !last.is_empty() {
                let _ = stream.write(&last);
            }
        }
    }

    /// True if writes go to shared memory.
    pub(super) fn has_memory(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.space_fd().1)
    }

    /// True if the peer takes large bodies as loans.
    pub(super) fn lends(&self) -> bool {
        self.stage.is_none() && self.stream.as_ref().is_some_and(|stream| stream.lends())
    }

    /// Returns the stream of the open session and the name of its registration.
    pub(super) fn stream(&self) -> Option<(&Arc<Stream>, Token)> {
        self.stream.as_ref().map(|stream| (stream, self.registration))
    }

    /// True if the kernel does not have all published and staged bytes yet.
    pub(super) fn has_pending(&mut self) -> bool {
        self.written < self.staged.len()
            || self.log.as_mut().is_some_and(|log| log.pending() > 0)
            || match &mut self.source {
                FrameSource::Queue(drain) => drain.pending() > 0,
                FrameSource::Slot(slot) => slot.is_full(),
            }
    }

    /// Returns the number of published bytes that the kernel does not have yet.
    pub(crate) fn unsent_bytes(&mut self) -> u64 {
        let queued = match &mut self.source {
            FrameSource::Queue(drain) => drain.pending(),
            FrameSource::Slot(_) => 0,
        };
        queued + self.log.as_mut().map_or(0, |log| log.pending())
    }

    /// Writes as many bytes as possible, but stops after the write with which `most` bytes of the
    /// queue are reached. The control frames follow at a message boundary.
    pub(super) fn flush(&mut self, most: u64, control: &ControlFrames) -> Flushed {
        // Taking the stream out and putting it back is cheaper than one more reference.
        let Some(stream) = self.stream.take() else { return Flushed::NoLink };
        let flushed = self.flush_to(&stream, most, control);
        self.stream = Some(stream);
        flushed
    }

    fn flush_to(&mut self, stream: &Stream, most: u64, control: &ControlFrames) -> Flushed {
        loop {
            match self.write_staged(stream) {
                Ok(()) => {}
                Err(flushed) => return flushed,
            }
            let more = match (&mut self.source, self.stage.is_some()) {
                (FrameSource::Queue(drain), false) => {
                    let queue = write_all(drain, stream, (most, self.batch), &mut self.taken);
                    let log = self.log.as_deref_mut().filter(|_| queue.is_ok());
                    match log.map_or(queue, |log| write_all(log, stream, (most, self.batch), &mut self.taken))
                    {
                        Ok(()) => false,
                        Err(flushed) => return flushed,
                    }
                }
                _ => match self.stage_next() {
                    Ok(more) => more,
                    Err(NoMemory) => return Flushed::Lost(errno::ENOMEM),
                },
            };
            if more {
                continue;
            }
            // All published bytes are written: a message boundary.
            let frames = control.take();
            let stage = self.stage.as_ref().map(|stage| lock(stage));
            if stage.as_ref().is_some_and(|stage| stage.is_out_of_memory()) {
                return Flushed::Lost(errno::ENOMEM);
            }
            let stage_speaks = stage.as_ref().is_some_and(|stage| stage.has_output());
            if frames.is_empty() && !stage_speaks {
                return Flushed::Drained;
            }
            match stage {
                Some(mut stage) if !frames.is_empty() => stage.seal_control(&frames, &mut self.staged),
                Some(mut stage) => stage.seal(&frames, &mut self.staged),
                None => self.staged.extend_from_slice(&frames),
            }
            if self.staged.is_empty() {
                return Flushed::Drained;
            }
        }
    }

    /// Releases the queue's memory after everything is written. `writer` is the queue's other end.
    pub(super) fn release_memory(&mut self, writer: &mut FrameWriter) {
        if let FrameSource::Queue(drain) = &mut self.source {
            writer.release_memory(drain);
        }
    }

    /// Writes a complete message that is not in the queue yet, directly from its body, if no bytes
    /// are before it. While the kernel is full, it waits for at most `patience` without progress.
    /// If some bytes could not be written, `append` puts the message into the queue, and the
    /// written bytes count as taken from there.
    pub(super) fn write_through(
        &mut self,
        flags: u8,
        body: &[u8],
        patience: Option<Duration>,
        append: impl FnOnce() -> bool,
    ) -> Option<Flushed> {
        let direct = self.stage.is_none() && self.stream.is_some() && !self.has_pending();
        let (Some(stream), FrameSource::Queue(drain), true) = (&self.stream, &mut self.source, direct) else {
            append();
            return None;
        };
        let mut header = [0; frame::MAX_HEADER];
        let header_len = frame::encode_header(flags, body.len() as u64, &mut header);
        let header = &header[..header_len];
        let mut written = 0;
        let flushed = loop {
            let result = match header.get(written..) {
                Some(rest) if !rest.is_empty() => stream.writev(&[IoSlice::new(rest), IoSlice::new(body)]),
                _ => stream.write(&body[written - header_len..]),
            };
            match result {
                Ok(n) => {
                    written += n;
                    self.taken.add(n);
                    if written == header_len + body.len() {
                        return Some(Flushed::Drained);
                    }
                }
                Err(error) => match write_failure(&error) {
                    Flushed::Blocked if patience.is_some_and(|time| wait_for_room(stream, time)) => {}
                    flushed => break flushed,
                },
            }
        };
        if !append() {
            // The peer waits for the end of a frame that we have no memory for.
            return Some(if written > 0 { Flushed::Lost(errno::ENOMEM) } else { flushed });
        }
        drain.pending();
        drain.advance(written as u64);
        Some(flushed)
    }

    fn put(&mut self, plain: &[u8]) -> Result<(), NoMemory> {
        match &self.stage {
            Some(stage) => seal(stage, [plain], &mut self.staged)?,
            None => self.staged.extend_from_slice(plain),
        }
        Ok(())
    }

    /// Stages the next piece of the source. Returns false if the source is empty.
    fn stage_next(&mut self) -> Result<bool, NoMemory> {
        let Pump { source, stage, staged, log, .. } = self;
        match (source, stage) {
            (FrameSource::Queue(drain), Some(stage)) => {
                let n = seal_queue(drain, stage, staged)?;
                drain.advance(n);
                if let Some(log) = log.as_mut().filter(|_| n == 0) {
                    let mut plain = Vec::new();
                    let n = log.peek_copy(SEGMENT, &mut plain);
                    log.advance(n);
                    seal(stage, [plain.as_slice()], staged)?;
                    return Ok(n > 0);
                }
                Ok(n > 0)
            }
            (FrameSource::Queue(_), None) => Ok(false),
            (FrameSource::Slot(slot), _) => {
                let Some((flags, message)) = slot.take() else { return Ok(false) };
                let mut plain = Vec::new();
                let room = frame::MAX_HEADER + message.len();
                plain.try_reserve_exact(room)?;
                staged.try_reserve_exact(room)?;
                put_frame(flags, message.as_slice(), &mut plain);
                self.put(&plain)?;
                Ok(true)
            }
        }
    }

    fn write_staged(&mut self, stream: &Stream) -> Result<(), Flushed> {
        while self.written < self.staged.len() {
            let most = self.batch.min(self.staged.len() - self.written);
            match stream.write(&self.staged[self.written..][..most]) {
                Ok(n) => {
                    self.written += n;
                    self.taken.add(n);
                }
                Err(error) => return Err(write_failure(&error)),
            }
        }
        self.staged.clear();
        // An idle connection does not keep the memory that a large message needed.
        self.staged.shrink_to(2 * SEGMENT);
        self.written = 0;
        Ok(())
    }
}

/// Seals the next bytes of the queue, directly from their memory. Returns their number.
fn seal_queue(drain: &mut ByteDrain, stage: &SharedStage, staged: &mut Vec<u8>) -> Result<u64, NoMemory> {
    let mut slices: [IoSlice<'_>; SLICES] = std::array::from_fn(|_| IoSlice::new(&[]));
    let (n, bytes) = drain.slices(&mut slices);
    if bytes == 0 {
        return Ok(0);
    }
    let mut sealed = 0;
    let pieces = slices[..n].iter().map(|slice| {
        let piece = &slice[..slice.len().min(SEGMENT - sealed)];
        sealed += piece.len();
        piece
    });
    seal(stage, pieces, staged)?;
    Ok(sealed as u64)
}

/// Appends the sealed `pieces` to `staged`. If there is no memory, the stage produces no output now
/// or later.
fn seal<'a>(
    stage: &SharedStage,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    staged: &mut Vec<u8>,
) -> Result<(), NoMemory> {
    check_shortage()?;
    let mut stage = lock(stage);
    pieces.into_iter().for_each(|piece| stage.seal(piece, staged));
    if stage.is_out_of_memory() { Err(NoMemory) } else { Ok(()) }
}

/// Frames to be written, in order.
trait Frames {
    /// Fills `out` with the next bytes. Returns the number of slices and of their bytes.
    fn slices<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> (usize, u64);
    /// Notes that `n` of these bytes were written.
    fn advance(&mut self, n: u64);
}

impl Frames for ByteDrain {
    fn slices<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> (usize, u64) {
        ByteDrain::slices(self, out)
    }

    fn advance(&mut self, n: u64) {
        ByteDrain::advance(self, n);
    }
}

impl Frames for LogReader {
    fn slices<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> (usize, u64) {
        LogReader::slices(self, out)
    }

    fn advance(&mut self, n: u64) {
        LogReader::advance(self, n);
    }
}

/// Writes at most `most` bytes of the slices.
#[cold]
fn write_piece(stream: &Stream, slices: &[IoSlice<'_>], most: usize) -> std::io::Result<usize> {
    let mut piece: [IoSlice<'_>; SLICES] = std::array::from_fn(|_| IoSlice::new(&[]));
    let mut left = most;
    for (part, slice) in piece.iter_mut().zip(slices) {
        let len = left.min(slice.len());
        *part = IoSlice::new(&slice[..len]);
        left -= len;
    }
    stream.writev(&piece[..slices.len()])
}

/// Hands all published frames to the kernel, at most `batch` bytes at a time. Stops after slightly
/// more than `most` bytes.
fn write_all(
    frames: &mut impl Frames,
    stream: &Stream,
    (most, batch): (u64, usize),
    taken: &mut Taken,
) -> Result<(), Flushed> {
    let mut total = 0;
    loop {
        let mut slices: [IoSlice<'_>; SLICES] = std::array::from_fn(|_| IoSlice::new(&[]));
        let (n, mut bytes) = frames.slices(&mut slices);
        if bytes == 0 {
            return Ok(());
        }
        let result = if bytes > batch as u64 {
            bytes = batch as u64;
            write_piece(stream, &slices[..n], batch)
        } else if n == 1 {
            stream.write(&slices[0])
        } else {
            stream.writev(&slices[..n])
        };
        match result {
            Ok(written) => {
                taken.add(written);
                frames.advance(written as u64);
                if (written as u64) < bytes {
                    return Err(Flushed::Blocked);
                }
                total += bytes;
                if total >= most {
                    return Err(Flushed::Partly);
                }
            }
            Err(error) => return Err(write_failure(&error)),
        }
    }
}

fn write_failure(error: &std::io::Error) -> Flushed {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Flushed::Blocked,
        _ => Flushed::Lost(errno::of(error).unwrap_or(errno::EIO)),
    }
}

/// Appends one complete frame to `out`.
pub(super) fn put_frame(flags: u8, body: &[u8], out: &mut Vec<u8>) {
    let mut header = [0; frame::MAX_HEADER];
    let n = frame::encode_header(flags, body.len() as u64, &mut header);
    out.extend_from_slice(&header[..n]);
    out.extend_from_slice(body);
}
