//! The read half of a connection: moves bytes from the kernel into the inbound queue, and checks
//! and counts the frame headers.
//!
//! Runs on the thread that holds the socket's read baton. The owner sees only complete messages: a
//! message is published when its last part has arrived. At the receive high-water mark reading
//! stops. Bytes that were already read stay unpublished, at most one read's worth.

use crate::error::check_shortage;
use crate::options::Options;
use std::cell::Cell;
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use tautline_io::errno;
use tautline_io::net::{Stream, is_loan};
use tautline_proto::command::{self, Command};
use tautline_proto::{ProtocolError, ReplyForm, frame};
use tautline_queue::message::Message;
use tautline_queue::sync::{Arc, lock, on_exit};
use tautline_queue::{ByteFiller, FrameReader, LONGEST, LatestMessage};

use super::connection::ConnectionKind;
use super::link::{Loss, SharedStage};

/// Bytes requested by one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes read at a time through a stage, or from one connection of many.
const SCRATCH: usize = 64 * 1024;
/// If the last read of one connection of many gave fewer bytes than this, the next read goes to the
/// scratch buffer, and the bytes are copied.
const LITTLE: usize = 4096;

/// Limit for bytes that wait for an owner that takes subscriptions. Subscriptions do not count as
/// messages, but must not fill memory while the owner is elsewhere. The limit has room for tens of
/// thousands of them.
const SUBSCRIPTION_BYTES: u64 = 1024 * 1024;
/// Limit for bytes that wait for any owner. The counters of a queue cannot distinguish more than
/// this number of bytes plus a message of the same length.
const UNREAD_BYTES: u64 = LONGEST;

thread_local! {
    // Without a destructor: see `tautline_io::thread::on_exit`.
    static BUFFERS: Cell<ManuallyDrop<(Vec<u8>, Vec<u8>)>> = const { Cell::new(ManuallyDrop::new((Vec::new(), Vec::new()))) };
    /// True if the thread keeps the buffers and frees them when it exits.
    static KEEPS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Frees the buffers when the thread exits.
fn free_buffers() {
    KEEPS.set(Some(false));
    drop(ManuallyDrop::into_inner(BUFFERS.take()));
}

/// Lends the thread's buffers to `work`. The first buffer is `SCRATCH` bytes long. A thread that is
/// about to exit has already freed its buffers and gets new ones, because a program may use its
/// sockets that late.
fn with_buffers<R>(work: impl FnOnce(&mut [u8], &mut Vec<u8>) -> R) -> std::io::Result<R> {
    let (mut wire, mut plain) = ManuallyDrop::into_inner(BUFFERS.take());
    let missing = SCRATCH.saturating_sub(wire.len());
    wire.try_reserve_exact(missing).map_err(|_| ErrorKind::OutOfMemory)?;
    wire.resize(SCRATCH, 0);
    plain.clear();
    let result = work(&mut wire, &mut plain);
    let keeps = KEEPS.get().unwrap_or_else(|| on_exit(free_buffers));
    KEEPS.set(Some(keeps));
    if keeps {
        BUFFERS.set(ManuallyDrop::new((wire, plain)));
    }
    Ok(result)
}

/// Destination of the messages.
pub(super) struct Sink {
    pub(super) filler: ByteFiller,
    /// ZMQ_CONFLATE: only the newest message is kept. The queue then holds only incomplete
    /// messages.
    pub(super) newest: Option<Box<Newest>>,
}

/// Destination of the newest message, and its decoder.
pub(super) struct Newest {
    pub(super) slot: Arc<LatestMessage>,
    pub(super) reader: FrameReader,
}

/// Result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// There were no bytes to read.
    Nothing,
    /// Bytes were read. `published` is true if a complete message has become readable.
    Bytes { published: bool },
    /// The queue is at the receive high-water mark.
    Full { published: bool },
    /// The session is over.
    Lost(Loss),
}

/// Actions that the peer's commands request from the connection. Filled by a read.
#[derive(Debug, Default)]
pub(super) struct PeerRequests {
    /// PONG frames that answer the PINGs of this read. Each PONG is at most as long as its PING.
    pub(super) pongs: Vec<u8>,
    /// Time to live that a PING grants us, in deciseconds. 0 if no PING granted any.
    pub(super) ttl_ds: u16,
    /// `ANSWER`, `PONG`, both or 0.
    pub(super) signs: u8,
}

impl PeerRequests {
    /// The stage has an answer that must be flushed.
    pub(super) const ANSWER: u8 = 1;
    /// A PONG has come.
    pub(super) const PONG: u8 = 2;

    /// True if the peer made no request.
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.pongs.is_empty() && self.ttl_ds == 0 && self.signs == 0
    }
}

/// The read half, behind a lock. While a session lasts, only the holder of the baton takes this
/// lock.
pub(crate) struct Intake {
    sink: Sink,
    stream: Option<Arc<Stream>>,
    stage: Option<SharedStage>,
    /// Limit for messages that wait for the owner. 0 for unlimited.
    limit: u32,
    /// Limit for the bytes of one read.
    batch: usize,
    /// Limit for bytes that wait for the owner.
    most_unread: u64,
    /// Longest accepted body.
    max_msg_size: u64,
    takes_subscriptions: bool,
    /// True if a body may stay in the memory of the peer's process.
    adopts_loans: bool,
    /// State of the check of incoming replies, for sockets whose messages must have a certain form.
    form: Option<ReplyForm>,
    in_message: bool,
    /// True if the peer sends no further bytes. Its remaining bytes are finite and are read even at
    /// the high-water mark.
    peer_finished: bool,
    /// True if the peer has said goodbye.
    over: bool,
    /// True for one connection of many: it holds no memory for future bytes.
    lean: bool,
    /// Number of bytes of the last read.
    last_read: usize,
    pub(super) session: u32,
}

impl Intake {
    pub(super) fn new(mut sink: Sink, limit: u32, options: &Options, kind: ConnectionKind) -> Self {
        sink.filler.set_longest_message(options.longest_message().min(LONGEST));
        let most_unread = if kind.takes_subscriptions { SUBSCRIPTION_BYTES } else { UNREAD_BYTES };
        Intake {
            sink,
            stream: None,
            stage: None,
            limit,
            batch: options.in_batch_size.map_or(usize::MAX, |bytes| bytes as usize),
            // Without any room, no message would ever come.
            most_unread: options.policy_settings.most_unread.unwrap_or(most_unread).clamp(1, most_unread),
            max_msg_size: options.max_msg_size.unwrap_or(u64::MAX),
            takes_subscriptions: kind.takes_subscriptions,
            adopts_loans: options.adopts_loans && !kind.takes_subscriptions,
            form: kind.takes_replies.then(ReplyForm::default),
            in_message: false,
            peer_finished: false,
            over: false,
            lean: false,
            last_read: 0,
            session: 0,
        }
    }

    pub(super) fn open(&mut self, session: u32, stream: Arc<Stream>, stage: Option<SharedStage>) {
        if stage.is_none() && self.adopts_loans && self.sink.newest.is_none() {
            stream.adopt_loans();
        }
        self.session = session;
        self.stream = Some(stream);
        self.stage = stage;
        self.form = self.form.map(|_| ReplyForm::default());
        self.in_message = false;
        self.peer_finished = false;
        self.over = false;
    }

    /// Ends the session and drops an incomplete message.
    pub(super) fn close(&mut self) {
        self.stream = None;
        self.stage = None;
        self.in_message = false;
        self.filler().truncate_to_published();
        self.filler().release_spare();
    }

    pub(super) fn stream(&self) -> Option<&Arc<Stream>> {
        self.stream.as_ref()
    }

    /// True if checking for new bytes needs no system call.
    pub(super) fn reads_from_memory(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.reads_from_memory())
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Notes that the peer sends no further bytes.
    pub(super) fn set_peer_finished(&mut self) {
        self.peer_finished = true;
    }

    /// Marks this connection as one of many.
    pub(crate) fn set_lean(&mut self) {
        self.lean = true;
        self.filler().set_lean();
    }

    /// Called after the owner has read everything. Releases the queue's memory, unless other bytes
    /// are still on their way. `reader` is the queue's other end.
    pub(crate) fn release_memory(&mut self, reader: &mut FrameReader) {
        if self.sink.newest.is_none() {
            reader.release_memory(&mut self.sink.filler);
        }
    }

    fn filler(&mut self) -> &mut ByteFiller {
        &mut self.sink.filler
    }

    /// Reads once from the kernel and publishes the completed messages.
    pub(super) fn read(&mut self, asked: &mut PeerRequests) -> ReadOutcome {
        self.read_patiently(asked, || false)
    }

    /// Reads once from the kernel and publishes the completed messages. Tries again while there are
    /// no bytes and `again` returns true.
    pub(super) fn read_patiently(
        &mut self,
        asked: &mut PeerRequests,
        again: impl FnMut() -> bool,
    ) -> ReadOutcome {
        // Taking the stream out and putting it back is cheaper than one more reference.
        let Some(stream) = self.stream.take() else { return ReadOutcome::Nothing };
        let took = self.read_from(&stream, asked, again);
        self.stream = Some(stream);
        took
    }

    fn read_from(
        &mut self,
        stream: &Stream,
        asked: &mut PeerRequests,
        again: impl FnMut() -> bool,
    ) -> ReadOutcome {
        if self.filler().unscanned() > 0 {
            // Bytes left over from a time at the high-water mark.
            match self.scan(asked) {
                Ok((published, true)) => return ReadOutcome::Full { published },
                Ok((true, false)) => return ReadOutcome::Bytes { published: true },
                Ok((false, false)) => {}
                Err(error) => return self.handle_protocol_error(error),
            }
        }
        if self.is_full() {
            return ReadOutcome::Full { published: false };
        }
        if self.over {
            return ReadOutcome::Lost(Loss::Stream(0));
        }
        let little = self.lean && self.last_read < LITTLE && !self.filler().expects_body();
        let read = match self.stage {
            None if little => self.read_little(stream, again),
            None => {
                let (batch, little) = (self.batch, self.last_read < LITTLE);
                let filler = self.filler();
                // A second block is taken from the pool and given back. The read then costs the
                // kernel more, even if there are no bytes: a third of a look at a Unix stream.
                let least = if little && filler.segment_space() >= LITTLE { LITTLE } else { READ_BYTES };
                filler.fill(least.min(batch), batch, |room| stream.read_uninit(room), again)
            }
            Some(_) => match self.read_staged(stream, asked, again) {
                Ok(read) => read,
                Err(error) => return self.handle_stage_error(error, asked),
            },
        };
        match read {
            Ok(0) => ReadOutcome::Lost(Loss::Stream(0)),
            Ok(n) => {
                self.last_read = n;
                self.scanned(asked)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => ReadOutcome::Nothing,
                _ if is_loan(&error) => self.take_loan(stream, asked),
                _ => self.handle_read_error(&error),
            },
        }
    }

    /// Takes a body without a copy, or makes the next read copy it.
    #[cold]
    fn take_loan(&mut self, stream: &Stream, asked: &mut PeerRequests) -> ReadOutcome {
        let filler = &mut self.sink.filler;
        let loan = stream.take_loan(|length| filler.awaits_body(length));
        match loan.and_then(|loan| loan.map(|loan| filler.adopt_body(loan.into())).transpose()) {
            Ok(Some(())) => self.scanned(asked),
            Ok(None) => ReadOutcome::Bytes { published: false },
            Err(error) => self.handle_read_error(&error),
        }
    }

    /// Takes the plain frames and wire bytes that came with the handshake.
    pub(super) fn feed(&mut self, inbound: &[u8], bytes: &[u8], asked: &mut PeerRequests) -> ReadOutcome {
        if let Err(error) = self.filler().append(inbound) {
            return self.handle_read_error(&error);
        }
        match &mut self.stage {
            None => {
                if let Err(error) = self.filler().append(bytes) {
                    return self.handle_read_error(&error);
                }
            }
            Some(stage) => {
                let mut plain = Vec::new();
                let mut stage = lock(stage);
                let opened = stage.open(bytes, &mut plain);
                asked.signs |= if stage.has_output() { PeerRequests::ANSWER } else { 0 };
                self.over = stage.is_closed();
                drop(stage);
                if let Err(error) = self.filler().append(&plain) {
                    return self.handle_read_error(&error);
                }
                if let Err(error) = opened {
                    return self.handle_stage_error(error, asked);
                }
            }
        }
        self.scanned(asked)
    }

    /// Handles a failed read or a lack of memory. If memory is short, the incomplete message is
    /// dropped at once to free memory for the next steps.
    #[cold]
    fn handle_read_error(&mut self, error: &std::io::Error) -> ReadOutcome {
        if error.kind() == ErrorKind::OutOfMemory {
            self.filler().truncate_to_published();
            self.filler().release_spare();
            return ReadOutcome::Lost(Loss::Stream(errno::ENOMEM));
        }
        ReadOutcome::Lost(Loss::Stream(errno::of(error).unwrap_or(errno::EIO)))
    }

    /// Handles a protocol violation, or a lack of memory for the peer's bytes.
    #[cold]
    fn handle_protocol_error(&mut self, error: ProtocolError) -> ReadOutcome {
        match error {
            ProtocolError::NoMemory => self.handle_read_error(&ErrorKind::OutOfMemory.into()),
            error => ReadOutcome::Lost(Loss::Protocol(error)),
        }
    }

    /// Handles an error of the stage. Messages that were complete before the error are still
    /// published.
    fn handle_stage_error(&mut self, error: ProtocolError, asked: &mut PeerRequests) -> ReadOutcome {
        match self.scan(asked) {
            Ok(_) => self.handle_protocol_error(error),
            Err(earlier) => self.handle_protocol_error(earlier),
        }
    }

    fn scanned(&mut self, asked: &mut PeerRequests) -> ReadOutcome {
        match self.scan(asked) {
            Ok((_, false)) if self.over => ReadOutcome::Lost(Loss::Stream(0)),
            Ok((published, false)) => ReadOutcome::Bytes { published },
            Ok((published, true)) => ReadOutcome::Full { published },
            Err(error) => self.handle_protocol_error(error),
        }
    }

    /// True if the number of messages or bytes that wait for the owner is at its limit.
    pub(super) fn is_full(&mut self) -> bool {
        let (limit, most_unread) = (self.message_limit(), self.most_unread);
        limit != 0 && self.filler().backlog() >= limit || self.filler().unread() >= most_unread
    }

    /// Returns the current limit for messages that wait for the owner. 0 for unlimited.
    fn message_limit(&self) -> u32 {
        if self.peer_finished { 0 } else { self.limit }
    }

    /// Reads into the scratch buffer and copies the bytes, so that the connection holds no memory
    /// in advance.
    fn read_little(&mut self, stream: &Stream, mut again: impl FnMut() -> bool) -> std::io::Result<usize> {
        let most = SCRATCH.min(self.batch);
        with_buffers(|scratch, _| {
            let n = patiently(|| stream.read(&mut scratch[..most]), &mut again)?;
            self.filler().append(&scratch[..n])?;
            Ok(n)
        })?
    }

    fn read_staged(
        &mut self,
        stream: &Stream,
        asked: &mut PeerRequests,
        mut again: impl FnMut() -> bool,
    ) -> Result<std::io::Result<usize>, ProtocolError> {
        let most = SCRATCH.min(self.batch);
        let read = with_buffers(|wire, plain| {
            let read = patiently(|| stream.read(&mut wire[..most]), &mut again);
            if let (Ok(n), Some(stage)) = (&read, &mut self.stage) {
                // Some stages, such as TLS, cannot handle a failed allocation.
                check_shortage().map_err(|_| ProtocolError::NoMemory)?;
                let mut stage = lock(stage);
                let opened = stage.open(&wire[..*n], plain);
                asked.signs |= if stage.has_output() { PeerRequests::ANSWER } else { 0 };
                self.over = stage.is_closed();
                drop(stage);
                if let Err(error) = self.filler().append(plain) {
                    return Ok(Err(error));
                }
                opened?;
            }
            Ok(read)
        });
        read.unwrap_or_else(|error| Ok(Err(error)))
    }

    /// Scans the arrived frames, answers commands, and publishes complete messages. Returns two
    /// flags: true if a message was published, and true if the scan stopped at the high-water mark.
    fn scan(&mut self, asked: &mut PeerRequests) -> Result<(bool, bool), ProtocolError> {
        let limit = self.message_limit();
        let filler = self.filler();
        let room = if limit == 0 { u32::MAX } else { limit.saturating_sub(filler.backlog()) };
        // The usual case: only short messages.
        let messages = if room > 0 { self.scan_short(room) } else { 0 };
        let filler = self.filler();
        let full = messages == room;
        if messages > 0 && (full || filler.unscanned() == 0) {
            filler.publish_scanned(messages);
            self.settle()?;
            return Ok((true, full));
        }
        self.scan_frames(messages, room, asked)
    }

    /// Scans the next messages of short parts, at most `room`. Returns their number.
    fn scan_short(&mut self, room: u32) -> u32 {
        if self.in_message {
            // Otherwise each part of an incomplete message would scan all bytes after it again.
            return 0;
        }
        let most = Some(self.max_msg_size);
        let takes_replies = self.form.is_some();
        let filler = self.filler();
        if takes_replies {
            let mut form = ReplyForm::default();
            filler.next_short_messages(room, most, |more, len| form.check(more, len).is_ok())
        } else {
            filler.next_short_messages(room, most, |_, _| true)
        }
    }

    /// Scans frames of any kind, for `scan`. `messages` have been scanned and not published; `room`
    /// is the limit for their number.
    #[inline(never)]
    fn scan_frames(
        &mut self,
        mut messages: u32,
        room: u32,
        asked: &mut PeerRequests,
    ) -> Result<(bool, bool), ProtocolError> {
        let (max_msg_size, takes_subscriptions) = (self.max_msg_size, self.takes_subscriptions);
        let mut deliver = false;
        let mut full = messages == room;
        let mut broken = None;
        while !full && self.filler().unscanned() > 0 {
            let count = self.scan_short(room - messages);
            if count > 0 {
                messages += count;
                full = messages == room;
                continue;
            }
            let filler = self.filler();
            let scanned = match filler.next_frame(Some(max_msg_size)) {
                Ok(Some(scanned)) => scanned,
                Ok(None) => break,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            };
            if scanned.header.flags & frame::COMMAND != 0 {
                // Commands may also come between the parts of a message: libzmq sends PINGs there.
                match handle_command(filler, takes_subscriptions, asked) {
                    Ok(wanted) => {
                        if wanted {
                            filler.keep_last();
                        }
                        deliver |= wanted;
                    }
                    Err(error) => {
                        broken = Some(error);
                        break;
                    }
                }
                continue;
            }
            self.in_message = scanned.header.flags & frame::MORE != 0;
            if !self.in_message {
                messages += 1;
                full = messages == room;
            }
            // The message was counted above. If it is complete, the owner sees it and drops it.
            if let Some(form) = &mut self.form
                && let Err(error) = form.check(self.in_message, scanned.header.body_len)
            {
                broken = Some(error);
                break;
            }
        }
        let published = messages > 0 || deliver;
        let filler = self.filler();
        if published {
            filler.publish_scanned(messages);
        }
        filler.forget_commands();
        self.settle()?;
        // Messages that were complete before the error were still published.
        match broken {
            Some(error) => Err(error),
            None => Ok((published, full)),
        }
    }

    /// ZMQ_CONFLATE: moves the newest message to the slot.
    fn settle(&mut self) -> Result<(), ProtocolError> {
        if let Some(Newest { slot, reader }) = self.sink.newest.as_deref_mut() {
            loop {
                let mut message = Message::new();
                let read = reader.read_message(&mut message).map_err(|_| ProtocolError::NoMemory)?;
                let Some(head) = read else { break };
                if head.flags & frame::COMMAND == 0 {
                    slot.put_part(head.flags, message, head.flags & frame::MORE != 0);
                }
            }
            reader.credit();
        }
        Ok(())
    }
}

/// Reads. Tries again while there are no bytes and `again` returns true.
#[inline]
fn patiently(
    mut read: impl FnMut() -> std::io::Result<usize>,
    again: &mut impl FnMut() -> bool,
) -> std::io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && again() => {}
            result => return result,
        }
    }
}

/// Handles the command that was just scanned. Returns true if the owner must see it.
fn handle_command(
    filler: &mut ByteFiller,
    takes_subscriptions: bool,
    asked: &mut PeerRequests,
) -> Result<bool, ProtocolError> {
    let mut body = Vec::new();
    filler.body_of_last(&mut body).map_err(|_| ProtocolError::NoMemory)?;
    Ok(match command::parse(&body)? {
        Command::Ping { ttl_ds, context } => {
            command::put_pong(&mut asked.pongs, context);
            asked.ttl_ds = ttl_ds;
            false
        }
        Command::Pong { .. } => {
            asked.signs |= PeerRequests::PONG;
            false
        }
        Command::Subscribe(_) | Command::Cancel(_) | Command::Join(_) | Command::Leave(_) => {
            takes_subscriptions
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
