//! `FrameWriter`: the end of a chain where a socket's owner encodes frames.
//!
//! Used by the owner's thread (`pipe`). A frame is encoded where it will be read or written from,
//! so sending a small message is one copy and a few stores. Frames are invisible until `publish`
//! makes all of them visible as one message.

use super::chain::{self, Aside, Probe};
use super::drain::ByteDrain;
use super::producer::Producer;
use super::segment::{Position, trace};
use crate::error::NoMemory;
use crate::message::Message;
use crate::sync::atomic::Ordering;
use crate::sync::{prefetch, prefetch_to_write};
use tautline_mem::copy::copy_words;
use tautline_proto::frame;

/// Frames up to this length are kept in one piece, at the price of some unused room at the end of a
/// segment.
const TOGETHER: usize = if cfg!(loom) { 16 } else { 1024 };

/// Frames with shorter bodies have short headers.
pub(crate) const SHORT: usize = if cfg!(loom) { 64 } else { 256 };

/// Shorter bodies are always copied.
pub(crate) const COPIED: usize = if cfg!(loom) { SHORT } else { 8 * 1024 };

/// The producing end of an outbound or inproc chain.
pub(crate) struct FrameWriter {
    end: Producer,
    /// The high-water mark; `u64::MAX` for none.
    limit: u64,
    /// Credit counts in steps of this many messages.
    step: u64,
    /// Messages that went another way.
    beside: u64,
    /// `messages` that the consumer had given credit for when we last looked, in whole steps.
    credited: u64,
    /// The credit as `is_ahead` last saw it, in bytes.
    seen: u64,
    /// The chain has parcels.
    parcels: bool,
    /// Owned bodies of at least this length travel by reference.
    by_reference: usize,
    /// Other bodies of at least this length are copied to a message first, which then travels by
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

    /// All that is appended is secret: wiped when it has been read. To be called before the first
    /// frame. Bodies by reference are the business of their owner.
    pub(crate) fn keep_secret(&mut self) {
        self.end.keep_secret();
    }

    /// Sets the high-water mark; 0 for none. Takes effect at once, also below the number of
    /// messages in flight.
    pub(crate) fn set_limit(&mut self, messages: u32) {
        self.limit = if messages == 0 { u64::MAX } else { u64::from(messages) };
        // Relaxed: number.
        self.end.shared.aside.limit.0.store(messages.into(), Ordering::Relaxed);
    }

    /// As `set_limit`, with credit in steps of a twentieth of the mark: how much a queue takes in
    /// all then depends on how much its peer takes, and no more on how much of one message the
    /// kernel has of it. Queues of equally stuck peers are equally full.
    pub(crate) fn set_limit_in_steps(&mut self, messages: u32) {
        self.set_limit(messages);
        self.step = u64::from(messages / 20).max(1);
    }

    /// The high-water mark; 0 for none.
    pub(crate) fn limit(&self) -> u32 {
        u32::try_from(self.limit).unwrap_or(0)
    }

    /// Whether the published messages in flight are below the limit. Asked before the first part of
    /// a message.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        self.has_room_for_sure() || self.has_room_now()
    }

    /// Whether there certainly is room, by the credit as it was last looked at. False says nothing:
    /// look again.
    #[inline]
    pub(crate) fn has_room_for_sure(&self) -> bool {
        self.end.messages.wrapping_sub(self.credited) < self.limit
    }

    #[cold]
    fn has_room_now(&mut self) -> bool {
        let consumed = self.end.messages.wrapping_sub(self.end.in_flight());
        let all = consumed.wrapping_sub(chain::start().0).wrapping_add(self.beside);
        self.credited = consumed.wrapping_sub(all % self.step);
        self.end.messages.wrapping_sub(self.credited) < self.limit
    }

    /// A message went to the peer another way than through this queue. It has its credit with the
    /// next look.
    pub(crate) fn count_beside(&mut self) {
        self.beside = self.beside.wrapping_add(1);
        self.credited = self.credited.wrapping_sub(1);
    }

    /// Messages that are published and that there is no credit for: as `in_flight`, in whole steps,
    /// unless that is none.
    pub(crate) fn uncredited(&mut self) -> u64 {
        self.has_room_now();
        match self.in_flight() {
            0 => 0,
            _ => self.end.messages.wrapping_sub(self.credited),
        }
    }

    /// Messages and bytes of frames published so far.
    pub(crate) fn written(&self) -> (u64, u64) {
        let (messages, bytes) = chain::start();
        let all = self.end.bytes().wrapping_add(self.end.extra);
        (self.end.messages.wrapping_sub(messages), all.wrapping_sub(bytes))
    }

    /// Messages and bytes that went to the peer another way; they wrap.
    pub(crate) fn aside(&self) -> (u64, u64) {
        let Aside { messages, bytes, .. } = &self.end.shared.aside;
        (messages.0.load(Ordering::Relaxed), bytes.0.load(Ordering::Relaxed))
    }

    /// Some more did.
    #[inline(always)]
    pub(crate) fn add_aside(&mut self, (messages, bytes): (u64, u64)) {
        let aside = &self.end.shared.aside;
        Aside::add(&aside.messages, messages);
        Aside::add(&aside.bytes, bytes);
    }

    /// Some of them are counted elsewhere.
    pub(crate) fn take_off_aside(&mut self, (messages, bytes): (u64, u64)) {
        self.add_aside((messages.wrapping_neg(), bytes.wrapping_neg()));
    }

    /// Messages that were dropped for want of room or memory.
    pub(crate) fn dropped(&self) -> u64 {
        self.end.shared.aside.dropped.0.load(Ordering::Relaxed)
    }

    /// This many more were.
    #[inline(always)]
    pub(crate) fn count_dropped(&mut self, messages: u64) {
        Aside::add(&self.end.shared.aside.dropped, messages);
    }

    /// The queue was found full, and the peer is tried.
    pub(crate) fn count_full(&mut self) {
        Aside::add(&self.end.shared.aside.full, 1);
    }

    /// A look at the counts from outside.
    pub(crate) fn probe(&self) -> Probe {
        self.end.shared.probe()
    }

    /// Appends one frame with a copy of `body`; `flags` are `frame::MORE` and `frame::COMMAND`. Not
    /// visible before `publish`. After an error, here and below, nothing was appended, and what was
    /// before is still there.
    #[inline]
    pub(crate) fn append(&mut self, flags: u8, body: &[u8]) -> Result<(), NoMemory> {
        if self.append_short(flags, body) || self.append_medium(flags, body) {
            return Ok(());
        }
        self.append_long(flags, body)
    }

    /// As `append` for a body shorter than `SHORT` for which there is room; else false.
    #[inline(always)]
    pub(crate) fn append_short(&mut self, flags: u8, body: &[u8]) -> bool {
        let n = body.len();
        if n >= SHORT || n + 2 > self.end.room() {
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

    /// As `append` for a body shorter than `COPIED`, but not short, for which there is room in one
    /// piece; else false.
    #[inline]
    pub(crate) fn append_medium(&mut self, flags: u8, body: &[u8]) -> bool {
        let n = body.len();
        let medium = (256..COPIED).contains(&n) && self.end.room() >= frame::MAX_HEADER + n;
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
        self.make_room(together)?;
        self.put_piece(&header[..header_len]);
        self.put(body, header_len)
    }

    /// Goes on where `bytes` bytes lie together.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if self.end.room() < bytes { self.end.grow(bytes) } else { Ok(()) }
    }

    /// Copies bytes to the end, over as many nodes as they need. If there is no memory for them,
    /// the `before` bytes that lie before them in the current node are cut off, too.
    #[inline]
    fn put(&mut self, mut bytes: &[u8], before: usize) -> Result<(), NoMemory> {
        let start = Position { node: self.end.node, at: self.end.at.wrapping_sub(before) };
        let count = self.end.bytes().wrapping_sub(before as u64);
        while bytes.len() > self.end.room() {
            let (piece, rest) = bytes.split_at(self.end.room());
            self.put_piece(piece);
            if let Err(error) = self.end.grow(1) {
                // SAFETY: appended just now, so behind the mark, and not in an external node.
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

    /// Appends one frame with the body of a message: a large owned one travels by reference and
    /// leaves `body` empty, any other is copied and left alone.
    #[inline]
    pub(crate) fn append_message(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        if body.len() < self.by_reference || !body.is_movable() {
            self.append(flags, body.as_slice())
        } else {
            self.append_reference(flags, body)
        }
    }

    /// As `append_message`, for a large owned body between two sockets for which there is memory,
    /// which leaves `body` empty; else false.
    #[inline(always)]
    pub(crate) fn append_parcel(&mut self, flags: u8, body: &mut Message) -> bool {
        self.parcels
            && body.len() >= self.by_reference
            && body.is_movable()
            && self.end.append_parcel(flags, body).is_ok()
    }

    /// As `append_message`, for a body that is not copied, however short.
    #[cold]
    pub(crate) fn append_kept(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        self.append_reference(flags, body)
    }

    /// Takes a body that is movable.
    fn append_reference(&mut self, flags: u8, body: &mut Message) -> Result<(), NoMemory> {
        if self.parcels {
            return self.end.append_parcel(flags, body);
        }
        let len = body.len();
        let mut header = [0; frame::MAX_HEADER];
        let header_len = frame::encode_header(flags, len as u64, &mut header);
        self.end.admits((header_len + len) as u64)?;
        self.make_room(header_len)?;
        self.put_piece(&header[..header_len]);
        let entered = self.end.enter_external(body, len);
        if entered.is_err() {
            self.end.at = self.end.at.wrapping_sub(header_len);
        }
        entered
    }

    /// Appends frames that are encoded already, whole messages or the first parts of one.
    pub(crate) fn append_encoded(&mut self, frames: &[u8]) -> Result<(), NoMemory> {
        self.end.admits(frames.len() as u64)?;
        self.make_room(1)?;
        self.put(frames, 0)
    }

    /// Makes all appended frames visible, as `messages` messages.
    pub(crate) fn publish_many(&mut self, messages: u64) {
        self.end.publish(messages);
    }

    /// Makes all appended frames visible, as one message.
    #[inline]
    pub(crate) fn publish(&mut self) {
        self.end.publish(1);
    }

    /// Makes all appended frames visible without counting a message: for frames with
    /// `frame::COMMAND`, which no limit holds back.
    pub(crate) fn publish_uncounted(&mut self) {
        self.end.publish(0);
    }

    /// One queue of many: keeps its segments small as long as they are drained.
    pub(crate) fn set_lean(&mut self) {
        self.end.lean = true;
    }

    /// The caller holds both ends: if everything appended is drained, the queue gives up its
    /// memory. False if not.
    pub(crate) fn rest(&mut self, drain: &mut ByteDrain) -> bool {
        drain.rest(&mut self.end)
    }

    /// Whether the queue has memory to give up.
    #[inline]
    pub(crate) fn holds_memory(&self) -> bool {
        self.end.holds_memory()
    }

    /// Brings what the next message writes to into the cache.
    #[inline]
    pub(crate) fn prefetch(&self) {
        // A short message; it may lie across the end of a line.
        prefetch_to_write(self.end.at);
        prefetch_to_write(self.end.at.wrapping_add(64));
        prefetch_to_write(&raw const self.end.shared.tail);
        prefetch(&raw const self.end.shared.head);
    }

    /// Forgets what was appended since the last publication.
    pub(crate) fn rollback(&mut self) {
        self.end.cut_to_mark();
    }

    /// Bytes that are published and that the consumer has not given credit for. May be stale: too
    /// many, never too few.
    #[inline]
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.end.unconsumed()
    }

    /// Whether there are `bytes` bytes or more, bodies by reference included. Looks at the credit
    /// only where what it last saw does not tell: the consumer, which writes it with every large
    /// body, keeps the cache line.
    #[inline]
    pub(crate) fn is_ahead(&mut self, bytes: u64) -> bool {
        let written = self.end.bytes().wrapping_add(self.end.extra);
        if written.wrapping_sub(self.seen) < bytes {
            return false;
        }
        let ahead = self.end.ahead();
        self.seen = written.wrapping_sub(ahead);
        ahead >= bytes
    }

    /// Bytes that are published and that the consumer has not given credit for, bodies by reference
    /// included. Only a number.
    pub(crate) fn ahead(&self) -> u64 {
        self.end.ahead()
    }

    /// What the consumer has given credit for in all: changes whenever it does.
    pub(crate) fn consumed(&self) -> u32 {
        // Relaxed: number, and of that enough to see a change.
        self.end.shared.head.0.load(Ordering::Relaxed) as u32
    }

    /// Messages that are published and that the consumer has not given credit for.
    pub(crate) fn in_flight(&self) -> u64 {
        self.end.in_flight()
    }

    /// Sets how many bytes the queue may hold at once.
    #[cfg(test)]
    pub(crate) fn set_most_bytes(&mut self, bytes: u64) {
        self.end.set_most(bytes);
    }

    /// Size of the next segment, if the one after it need not be larger.
    #[cfg(test)]
    pub(crate) fn segment_size(&self) -> usize {
        self.end.next_size
    }

    /// Room left in the current segment.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.end.room()
    }

    /// Whether frames were appended and not published.
    #[cfg(test)]
    pub(crate) fn unpublished(&self) -> bool {
        self.end.unpublished()
    }
}
