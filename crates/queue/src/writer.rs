//! `FrameWriter`: the end of a chain where a socket's owner encodes frames.
//!
//! Used by the owner's thread (`pipe`). A frame is encoded directly in its final memory, so sending
//! a small message is one copy and a few stores. Frames are invisible until `publish` makes all of
//! them visible as one message.

use super::chain::{self, Probe, ProducerCounters};
use super::drain::ByteDrain;
use super::producer::Producer;
use super::segment::{Position, trace};
use crate::message::Message;
use crate::sync::atomic::Ordering;
use crate::sync::{prefetch, prefetch_to_write};
use tautline_mem::copy::copy_words;
use tautline_mem::reserve::NoMemory;
use tautline_proto::frame;

/// Frames up to this length are kept contiguous, which may leave some room unused at the end of a
/// segment.
const TOGETHER: usize = if cfg!(loom) { 16 } else { 1024 };

/// Frames whose bodies are shorter than this have short headers.
pub const SHORT: usize = if cfg!(loom) { 64 } else { 256 };

/// Bodies that are shorter than this are always copied.
pub const COPIED: usize = if cfg!(loom) { SHORT } else { 8 * 1024 };

/// The producing end of an outbound or inproc chain.
pub struct FrameWriter {
    end: Producer,
    /// The high-water mark; `u64::MAX` for unlimited.
    limit: u64,
    /// Credit counts in steps of this many messages.
    step: u64,
    /// Number of messages that bypassed the queue.
    beside: u64,
    /// The messages that the consumer had credited when the credit was last read, in whole steps.
    credited: u64,
    /// The credit in bytes at the last call of `has_wire_bytes_in_flight`.
    seen: u64,
    /// True if the chain has parcels.
    parcels: bool,
    /// Owned bodies of at least this length travel by reference.
    by_reference: usize,
    /// Other bodies of at least this length are first copied to a message, which then travels by
    /// reference.
    copy_by_reference: usize,
}

impl FrameWriter {
    pub(super) fn new(end: Producer, by_reference: usize, copy_by_reference: usize) -> Self {
        let credited = end.messages;
        let seen = end.bytes();
        FrameWriter {
            parcels: end.shared.kind.has_parcels(),
            end,
            limit: u64::MAX,
            step: 1,
            beside: 0,
            credited,
            seen,
            by_reference,
            copy_by_reference,
        }
    }

    /// Marks all appended frames as secret: their memory is wiped after they were read. Called
    /// before the first frame. The owner of a body by reference is responsible for that body.
    pub fn keep_secret(&mut self) {
        self.end.keep_secret();
    }

    /// Sets the high-water mark; 0 for unlimited. Takes effect at once, even below the number of
    /// messages in flight.
    pub fn set_limit(&mut self, messages: u32) {
        self.limit = if messages == 0 { u64::MAX } else { u64::from(messages) };
        // Relaxed: number.
        self.end.shared.counters.limit.0.store(messages.into(), Ordering::Relaxed);
    }

    /// Sets the high-water mark and gives credit in steps of a twentieth of the mark. The limit of
    /// a queue then depends only on the messages that its peer has taken, and not on a partly
    /// written message. Queues of equally stuck peers are equally full.
    pub fn set_limit_in_steps(&mut self, messages: u32) {
        self.set_limit(messages);
        self.step = u64::from(messages / 20).max(1);
    }

    /// Returns the high-water mark; 0 for unlimited.
    #[inline]
    pub fn limit(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(0)
    }

    /// True if the published messages in flight are below the limit. Called before the first part
    /// of a message.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        self.has_room_for_sure() || self.refresh_room()
    }

    /// True if the credit that was last read shows room. If it returns false, newer credit may
    /// still make room: call `has_room`.
    #[inline]
    pub fn has_room_for_sure(&self) -> bool {
        self.end.messages.wrapping_sub(self.credited) < self.limit
    }

    #[cold]
    fn refresh_room(&mut self) -> bool {
        let consumed = self.end.messages.wrapping_sub(self.end.in_flight());
        let all = consumed.wrapping_sub(chain::start().0).wrapping_add(self.beside);
        self.credited = consumed.wrapping_sub(all % self.step);
        self.end.messages.wrapping_sub(self.credited) < self.limit
    }

    /// Counts a message that went to the peer without this queue. The next reading of the credit
    /// includes it.
    #[inline]
    pub fn count_bypass(&mut self) {
        self.beside = self.beside.wrapping_add(1);
        self.credited = self.credited.wrapping_sub(1);
    }

    /// Returns the number of published messages without credit, counted in the steps of
    /// `set_limit_in_steps`. Returns 0 if there are none.
    #[inline]
    pub fn uncredited(&mut self) -> u64 {
        self.refresh_room();
        match self.in_flight() {
            0 => 0,
            _ => self.end.messages.wrapping_sub(self.credited),
        }
    }

    /// Returns the messages and bytes of frames published so far.
    #[inline]
    pub fn written(&self) -> (u64, u64) {
        let (messages, bytes) = chain::start();
        let all = self.end.bytes().wrapping_add(self.end.extra);
        (self.end.messages.wrapping_sub(messages), all.wrapping_sub(bytes))
    }

    /// Returns the messages and bytes that bypassed the queue. The counts wrap.
    #[inline]
    pub fn bypass_counts(&self) -> (u64, u64) {
        let ProducerCounters { messages, bytes, .. } = &self.end.shared.counters;
        (messages.0.load(Ordering::Relaxed), bytes.0.load(Ordering::Relaxed))
    }

    /// Adds messages and bytes that bypassed the queue.
    #[inline(always)]
    pub fn add_bypass(&mut self, (messages, bytes): (u64, u64)) {
        let aside = &self.end.shared.counters;
        ProducerCounters::add(&aside.messages, messages);
        ProducerCounters::add(&aside.bytes, bytes);
    }

    /// Subtracts messages and bytes that are counted elsewhere.
    #[inline]
    pub fn subtract_bypass(&mut self, (messages, bytes): (u64, u64)) {
        self.add_bypass((messages.wrapping_neg(), bytes.wrapping_neg()));
    }

    /// Returns the number of messages that were dropped because there was no room or no memory.
    #[inline]
    pub fn dropped(&self) -> u64 {
        self.end.shared.counters.dropped.0.load(Ordering::Relaxed)
    }

    /// Counts dropped messages.
    #[inline(always)]
    pub fn count_dropped(&mut self, messages: u64) {
        ProducerCounters::add(&self.end.shared.counters.dropped, messages);
    }

    /// Counts a message that found the queue full, before the caller tried to make room.
    #[inline]
    pub fn count_full(&mut self) {
        ProducerCounters::add(&self.end.shared.counters.full, 1);
    }

    /// Returns a probe for the counters.
    pub fn probe(&self) -> Probe {
        self.end.shared.probe()
    }

    /// Appends one frame with a copy of `body`; `flags` are `frame::MORE` and `frame::COMMAND`. Not
    /// visible before `publish`. After an error, this method and those below leave the queue
    /// unchanged.
    #[inline]
    pub fn append(&mut self, flags: u8, body: &[u8]) -> Result<(), NoMemory> {
        if self.append_short(flags, body) || self.append_medium(flags, body) {
            return Ok(());
        }
        self.append_long(flags, body)
    }

    /// Appends one frame, if the body is shorter than `SHORT` and there is contiguous room.
    /// Otherwise returns false.
    #[inline(always)]
    pub fn append_short(&mut self, flags: u8, body: &[u8]) -> bool {
        let n = body.len();
        if n >= SHORT || n + 2 > self.end.node_space() {
            return false;
        }
        let at = self.end.at;
        trace::wrote(self.end.node, at, n + 2);
        // SAFETY: `room` bytes behind `at` are ours to write.
        unsafe { at.cast::<[u8; 2]>().write([flags, n as u8]) };
        // SAFETY: as above, and the body lies elsewhere.
        unsafe { copy_words(body.as_ptr(), at.wrapping_add(2), n) };
        self.end.at = at.wrapping_add(n + 2);
        true
    }

    /// Appends one frame, if the body is shorter than `COPIED`, is not short and finds contiguous
    /// room. Otherwise returns false.
    #[inline]
    pub fn append_medium(&mut self, flags: u8, body: &[u8]) -> bool {
        let n = body.len();
        let medium = (256..COPIED).contains(&n) && self.end.node_space() >= frame::MAX_HEADER + n;
        if medium {
            let mut header = [0; frame::MAX_HEADER];
            frame::encode_header(flags, n as u64, &mut header);
            self.put_piece(&header);
            self.put_piece(body);
        }
        medium
    }

    #[inline(never)]
    fn append_long(&mut self, flags: u8, body: &[u8]) -> Result<(), NoMemory> {
        let n = body.len();
        if n >= self.copy_by_reference {
            return self.append_reference(flags, &mut Message::try_from_slice(body).ok_or(NoMemory)?);
        }
        let mut header = [0; frame::MAX_HEADER];
        let header_len = frame::encode_header(flags, n as u64, &mut header);
        self.end.admits((header_len + n) as u64)?;
        let together = header_len + if n <= TOGETHER { n } else { 0 };
        self.reserve(together)?;
        self.put_piece(&header[..header_len]);
        self.put(body, header_len)
    }

    /// Makes room for `bytes` contiguous bytes.
    #[inline]
    fn reserve(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if self.end.node_space() < bytes { self.end.grow(bytes) } else { Ok(()) }
    }

    /// Copies bytes to the end, over as many nodes as they need. If there is no memory for them,
    /// also cuts off the `before` bytes that lie before them in the current node.
    #[inline]
    fn put(&mut self, mut bytes: &[u8], before: usize) -> Result<(), NoMemory> {
        let start = Position { node: self.end.node, at: self.end.at.wrapping_sub(before) };
        let count = self.end.bytes().wrapping_sub(before as u64);
        while bytes.len() > self.end.node_space() {
            let (piece, rest) = bytes.split_at(self.end.node_space());
            self.put_piece(piece);
            if let Err(error) = self.end.grow(1) {
                // SAFETY: just appended, so behind the mark, and not in an external node.
                unsafe { self.end.cut(start, count) };
                return Err(error);
            }
            bytes = rest;
        }
        self.put_piece(bytes);
        Ok(())
    }

    /// Copies bytes for which there is room.
    #[inline(always)]
    fn put_piece(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            trace::wrote(self.end.node, self.end.at, bytes.len());
            // SAFETY: as in `append`.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.end.at, bytes.len()) };
            self.end.at = self.end.at.wrapping_add(bytes.len());
        }
    }

    /// Appends one frame with the body of a message. A large owned body travels by reference and
    /// leaves `body` empty. Any other body is copied and left alone.
    #[inline]
    pub fn append_message(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        if body.len() < self.by_reference || !body.is_movable() {
            self.append(flags, body.as_slice())
        } else {
            self.append_reference(flags, body)
        }
    }

    /// Appends a large owned body by reference, between two sockets of one process, and leaves
    /// `body` empty. Returns false for other bodies or if there is no memory.
    #[inline(always)]
    pub fn append_parcel(&mut self, flags: u8, body: &mut Message) -> bool {
        self.parcels
            && body.len() >= self.by_reference
            && body.is_movable()
            && self.end.append_parcel(flags, body).is_ok()
    }

    /// Appends one frame whose body travels by reference, whatever its length. For bodies that must
    /// not be copied. Leaves `body` empty.
    #[cold]
    pub fn append_kept(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        self.append_reference(flags, body)
    }

    /// Appends one frame with a copy of a large body, in memory that the peer can read in place.
    /// Returns false if there is no such memory for it.
    #[cold]
    pub fn append_lendable(&mut self, flags: u8, body: &[u8]) -> Result<bool, NoMemory> {
        match Message::lendable_copy(body) {
            Some(mut copy) => self.append_reference(flags, &mut copy).map(|()| true),
            None => Ok(false),
        }
    }

    /// Appends one frame that takes over the body of `body`, which must be movable.
    fn append_reference(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        if self.parcels {
            return self.end.append_parcel(flags, body);
        }
        let len = body.len();
        let mut header = [0; frame::MAX_HEADER];
        let header_len = frame::encode_header(flags, len as u64, &mut header);
        self.end.admits((header_len + len) as u64)?;
        self.reserve(header_len)?;
        self.put_piece(&header[..header_len]);
        let entered = self.end.enter_external(body, len);
        if entered.is_err() {
            self.end.at = self.end.at.wrapping_sub(header_len);
        }
        entered
    }

    /// Appends encoded frames: whole messages or the first parts of one.
    pub fn append_encoded(&mut self, frames: &[u8]) -> Result<(), NoMemory> {
        self.end.admits(frames.len() as u64)?;
        self.reserve(1)?;
        self.put(frames, 0)
    }

    /// Publishes all appended frames as `messages` messages.
    #[inline]
    pub fn publish_many(&mut self, messages: u64) {
        self.end.publish(messages);
    }

    /// Publishes all appended frames as one message.
    #[inline]
    pub fn publish(&mut self) {
        self.end.publish(1);
    }

    /// Publishes all appended frames without counting a message: for frames with `frame::COMMAND`,
    /// which the limit does not hold back.
    #[inline]
    pub fn publish_uncounted(&mut self) {
        self.end.publish(0);
    }

    /// Marks this queue as one of many: it keeps its segments small while they are drained.
    pub fn set_lean(&mut self) {
        self.end.lean = true;
    }

    /// Releases the queue's memory if everything appended is drained. The caller holds both ends.
    /// Returns true if it released the memory.
    #[inline]
    pub fn release_memory(&mut self, drain: &mut ByteDrain) -> bool {
        drain.release_memory(&mut self.end)
    }

    /// True if the queue holds memory that it could release.
    #[inline]
    pub fn holds_memory(&self) -> bool {
        self.end.holds_memory()
    }

    /// Prefetches the memory that the next message writes to.
    #[inline]
    pub fn prefetch(&self) {
        // A short message; it may cross the end of a cache line.
        prefetch_to_write(self.end.at);
        prefetch_to_write(self.end.at.wrapping_add(64));
        prefetch_to_write(&raw const self.end.shared.tail);
        prefetch(&raw const self.end.shared.head);
    }

    /// Drops the frames that were appended since the last publication.
    #[inline]
    pub fn rollback(&mut self) {
        self.end.truncate_to_published();
    }

    /// Returns the number of published bytes that the consumer has not credited. A stale value may
    /// be too high, but never too low.
    #[inline]
    pub fn unflushed_bytes(&self) -> u64 {
        self.end.unconsumed()
    }

    /// True if at least `bytes` published bytes are not credited, including bodies by reference.
    /// Loads the credit only if its last value is not enough: the consumer, which writes the credit
    /// with every large body, then keeps the cache line.
    #[inline]
    pub fn has_wire_bytes_in_flight(&mut self, bytes: u64) -> bool {
        let written = self.end.bytes().wrapping_add(self.end.extra);
        if written.wrapping_sub(self.seen) < bytes {
            return false;
        }
        let ahead = self.end.wire_bytes_in_flight();
        self.seen = written.wrapping_sub(ahead);
        ahead >= bytes
    }

    /// Returns the number of published bytes that the consumer has not credited, including bodies
    /// by reference. Used only as a number.
    #[inline]
    pub fn wire_bytes_in_flight(&self) -> u64 {
        self.end.wire_bytes_in_flight()
    }

    /// Returns the total of the consumer's credit, which changes with each credit.
    #[inline]
    pub fn consumed(&self) -> u32 {
        // Relaxed: number, with enough bits to see a change.
        self.end.shared.head.0.load(Ordering::Relaxed) as u32
    }

    /// Returns the number of published messages that the consumer has not credited.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.end.in_flight()
    }

    /// Sets the limit for the bytes in the queue.
    #[cfg(test)]
    pub(crate) fn set_most_bytes(&mut self, bytes: u64) {
        self.end.set_most(bytes);
    }

    /// Returns the size of the next segment, if the segment after it need not be larger.
    #[cfg(test)]
    pub(crate) fn segment_size(&self) -> usize {
        self.end.next_size
    }

    /// Returns the room left in the current segment.
    #[cfg(test)]
    pub(crate) fn segment_space(&self) -> usize {
        self.end.node_space()
    }

    /// True if there are appended and unpublished frames.
    #[cfg(test)]
    pub(crate) fn unpublished(&self) -> bool {
        self.end.unpublished()
    }
}
