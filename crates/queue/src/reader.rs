//! `FrameReader`: the end of a chain where a socket's owner decodes frames.
//!
//! Used by the owner's thread (`pipe`), which sees only whole messages. The reader credits read
//! messages in batches: every 64 messages, every 32 KiB, and when it finds no further message.

use super::chain::{self, Probe};
use super::consumer::Consumer;
use super::filler::ByteFiller;
use super::parcel::{self, BODY, PARCEL};
use super::segment::{Node, Position, copy_body, trace};
use crate::message::Message;
use crate::sync::atomic::Ordering;
use tautline_mem::reserve::NoMemory;
use tautline_proto::frame;

/// Limit for the messages that are read without credit.
const CREDIT_MESSAGES: u32 = 64;
/// Limit for the bytes that are read without credit (checked at the next look for more).
const CREDIT_BYTES: u64 = 32 * 1024;
/// Limit for the bytes of parcels, which are not copied, that are read without credit.
const CREDIT_EXTRA: u64 = 64 * 1024;

/// Contents of a frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// `frame::MORE`, `frame::COMMAND`; `frame::LONG` as on the wire.
    pub flags: u8,
    /// Length of the body.
    pub len: usize,
}

impl FrameHead {
    #[inline(always)]
    fn header_len(self) -> usize {
        if self.flags & frame::LONG != 0 { frame::MAX_HEADER } else { 2 }
    }

    #[inline(always)]
    fn ends_message(self) -> bool {
        self.flags & (frame::MORE | frame::COMMAND) == 0
    }

    /// True if this is the last part of a message, with its body behind it.
    #[inline(always)]
    fn is_plain_end(self) -> bool {
        self.flags & (frame::MORE | frame::COMMAND | PARCEL) == 0
    }

    #[inline(always)]
    fn is_parcel(self) -> bool {
        self.flags & PARCEL != 0
    }

    /// Returns the head that a parcel's message would have as a normal frame.
    fn of_parcel(self, len: usize) -> FrameHead {
        let long = if len < 256 { 0 } else { frame::LONG };
        FrameHead { flags: self.flags & !PARCEL | long, len }
    }
}

/// The consuming end of an inbound or inproc chain.
pub struct FrameReader {
    start: Consumer,
    /// Start of the next frame.
    position: Position,
    /// End of the published bytes that are known to be contiguous behind `position`.
    stop: *mut u8,
    /// Count of bytes read = `base` + address of `position.at` (wrapping).
    base: u64,
    /// The tail word as last loaded.
    tail: u64,
    /// Count of messages read.
    messages: u64,
    /// The count of messages at which credit is due.
    credit_due: u64,
    credit_every: u64,
    /// The credit as last given, in bytes.
    head: u64,
    /// True if frames may be parcels.
    parcels: bool,
    /// Size of the bodies of all read parcels beyond their bytes in the chain, and the part of it
    /// that was already credited.
    extra: u64,
    extra_told: u64,
    /// A body in more than two pieces, for `peek`.
    scratch: Vec<u8>,
}

// SAFETY: the position lies in nodes that belong to the consuming side.
unsafe impl Send for FrameReader {}

impl FrameReader {
    pub(super) fn new(start: Consumer) -> Self {
        let (messages, bytes) = chain::start();
        let credit_every = u64::from(CREDIT_MESSAGES);
        FrameReader {
            parcels: start.shared.kind.has_parcels(),
            start,
            position: Position::NOWHERE,
            stop: std::ptr::null_mut(),
            base: bytes,
            tail: chain::pack(messages, bytes),
            messages,
            credit_due: messages + credit_every,
            credit_every,
            head: bytes,
            extra: 0,
            extra_told: 0,
            scratch: Vec::new(),
        }
    }

    /// Sets the producer's limit (0 for unlimited). The reader then gives credit after at most half
    /// of it.
    pub fn set_credit_every(&mut self, limit: u32) {
        let half = if limit == 0 { CREDIT_MESSAGES } else { limit.div_ceil(2).min(CREDIT_MESSAGES) };
        self.credit_every = u64::from(half);
        self.credit();
    }

    #[inline(always)]
    fn bytes(&self) -> u64 {
        self.base.wrapping_add(self.position.at.addr() as u64)
    }

    /// True if the reader knows of further bytes. If it returns false, newer bytes may have
    /// arrived.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.position.at != self.stop
    }

    /// True if a frame can be read. Loads the tail if needed.
    #[inline]
    pub fn is_ready(&mut self) -> bool {
        self.position.at != self.stop || self.poll_more()
    }

    /// True if one load of the tail shows a frame. Does not change the reader's state or give
    /// credit.
    #[inline]
    pub fn has_published_frame(&self) -> bool {
        // Relaxed: number; a thread that reads looks again.
        chain::bytes_ahead(self.start.shared.tail.0.load(Ordering::Relaxed), self.bytes()) != 0
    }

    /// Returns a number that changes with each publication.
    #[inline]
    pub fn arrived(&self) -> u64 {
        // Relaxed: number.
        self.start.shared.tail.0.load(Ordering::Relaxed)
    }

    /// Looks for bytes beyond `stop`, and returns true if there are any. Gives credit if it is due,
    /// or if there are no bytes.
    #[inline(never)]
    fn poll_more(&mut self) -> bool {
        let read = self.bytes();
        let mut visible = chain::bytes_ahead(self.tail, read);
        if visible == 0 {
            // Acquire pairs with the Release in the producer's `publish`.
            self.tail = self.start.shared.tail.0.load(Ordering::Acquire);
            visible = chain::bytes_ahead(self.tail, read);
            if visible == 0 {
                self.credit();
                return false;
            }
        }
        if self.position.node.is_null() {
            // SAFETY: bytes are published.
            self.position = unsafe { self.start.begin() };
        }
        // SAFETY: `visible` bytes are published behind the position.
        let run = unsafe { self.position.next_run(visible) };
        // SAFETY: everything before the position was read.
        unsafe { self.start.release(&self.position) };
        self.stop = self.position.at.wrapping_add(run.min(CREDIT_BYTES as usize));
        self.base = read.wrapping_sub(self.position.at.addr() as u64);
        if read.wrapping_sub(self.head) >= CREDIT_BYTES {
            self.credit();
        }
        true
    }

    /// Releases the queue's memory if everything is read. The caller holds both ends. Returns true
    /// if it released the memory.
    pub fn release_memory(&mut self, filler: &mut ByteFiller) -> bool {
        if self.has_published_frame() {
            return false;
        }
        let read = self.bytes();
        self.credit();
        if !filler.release_memory(&mut self.start, read) {
            return false;
        }
        self.position = Position::NOWHERE;
        self.stop = std::ptr::null_mut();
        self.base = read;
        self.scratch = Vec::new();
        true
    }

    /// True if the queue holds memory that it could release, as far as the reader knows.
    #[inline]
    pub fn holds_memory(&self) -> bool {
        !self.position.node.is_null()
    }

    /// Gives credit for everything read. Called automatically in batches.
    #[cold]
    #[inline(never)]
    pub fn credit(&mut self) {
        self.credit_due = self.messages.wrapping_add(self.credit_every);
        let bytes = self.bytes();
        // Every message has at least one byte.
        if bytes != self.head {
            self.head = bytes;
            if self.extra != self.extra_told {
                self.extra_told = self.extra;
                self.start.shared.extra.0.store(self.extra, Ordering::Relaxed);
            }
            self.start.credit(self.messages, bytes);
        }
    }

    /// Counts one more read frame.
    #[inline(always)]
    fn count(&mut self, head: FrameHead) {
        if head.ends_message() {
            self.messages = self.messages.wrapping_add(1);
            if self.messages == self.credit_due {
                self.credit();
            }
        }
    }

    /// Returns the head and body of the next frame if it is contiguous and not a parcel.
    #[inline(always)]
    fn contiguous_plain_frame(&mut self) -> Option<(FrameHead, *const u8)> {
        self.contiguous_frame().filter(|(head, _)| !head.is_parcel())
    }

    /// Returns the head and body of the next frame if it is contiguous. A parcel is returned in its
    /// stored form.
    #[inline(always)]
    fn contiguous_frame(&mut self) -> Option<(FrameHead, *const u8)> {
        let left = self.stop.addr() - self.position.at.addr();
        if left < 2 {
            return None;
        }
        let at = self.position.at;
        trace::read(self.position.node, at, 2);
        // SAFETY: `left` published bytes lie behind the position.
        let [flags, len] = unsafe { at.cast::<[u8; 2]>().read() };
        let (len, header_len) = if flags & frame::LONG == 0 {
            (usize::from(len), 2)
        } else if left >= frame::MAX_HEADER {
            // SAFETY: as above; the header of a long frame, which the producer checked.
            let len = unsafe { at.wrapping_add(1).cast::<[u8; 8]>().read() };
            (u64::from_be_bytes(len) as usize, frame::MAX_HEADER)
        } else {
            return None;
        };
        if len > left - header_len {
            return None;
        }
        trace::read(self.position.node, at, header_len + len);
        Some((FrameHead { flags, len }, at.wrapping_add(header_len)))
    }

    /// Skips a contiguous frame.
    #[inline(always)]
    fn consume_contiguous(&mut self, head: FrameHead) {
        self.position.at = self.position.at.wrapping_add(head.header_len() + head.len);
        self.count(head);
    }

    /// Returns the head of the next frame in any memory layout, and the position of its body. A
    /// parcel is returned in its stored form.
    fn find(&mut self) -> Option<(FrameHead, Position)> {
        if !self.is_ready() {
            return None;
        }
        let visible = chain::bytes_ahead(self.tail, self.bytes());
        let mut bytes = [0; frame::MAX_HEADER];
        let n = visible.min(frame::MAX_HEADER as u64) as usize;
        let mut body = self.position;
        // SAFETY: `visible` bytes are published behind the position.
        unsafe { body.copy(&mut bytes[..n]) };
        let parcel = if self.parcels { bytes[0] & PARCEL } else { 0 };
        bytes[0] ^= parcel;
        // The producer publishes only frames that it encoded or scanned itself, so this decodes.
        let header = frame::decode_header(&bytes[..n]).ok().flatten()?;
        body = self.position;
        // SAFETY: whole frames are published.
        unsafe { body.skip(header.header_len as u64) };
        if parcel != 0 {
            // SAFETY: as above, and a parcel is contiguous.
            unsafe { body.next_run(header.body_len) };
            trace::read(body.node, body.at, header.body_len as usize);
        }
        Some((FrameHead { flags: header.flags | parcel, len: header.body_len as usize }, body))
    }

    /// Skips a frame; `end` is the position behind its body.
    fn consume(&mut self, head: FrameHead, end: Position) {
        let bytes = self.bytes().wrapping_add((head.header_len() + head.len) as u64);
        if end.node != self.position.node || end.at > self.stop {
            self.stop = end.at;
        }
        self.position = end;
        self.base = bytes.wrapping_sub(end.at.addr() as u64);
        // SAFETY: `end` is behind the old position, in published bytes, and its slices were given
        // back with `&mut self`.
        unsafe { self.start.release(&self.position) };
        self.count(head);
    }
}

impl FrameReader {
    /// Skips the next frame if a quick check shows that it is an empty part before others. If it
    /// returns false, the frame may still be such a part.
    #[inline]
    pub fn skip_delimiter(&mut self) -> bool {
        let found = self.is_ready()
            && self
                .contiguous_frame()
                .is_some_and(|(head, _)| head == FrameHead { flags: frame::MORE, len: 0 });
        if found {
            self.position.at = self.position.at.wrapping_add(2);
        }
        found
    }

    /// Returns the head of the next frame without consuming it.
    #[inline]
    pub fn head(&mut self) -> Option<FrameHead> {
        if let Some((head, _)) = self.contiguous_plain_frame() {
            return Some(head);
        }
        let (head, body) = self.find()?;
        if !head.is_parcel() {
            return Some(head);
        }
        // SAFETY: published, and not taken out here.
        let bytes = unsafe { Message::packed_body(body.at) };
        Some(head.of_parcel(bytes.len()))
    }

    /// Reads the next frame into `out`. Bytes that do not fit are dropped. The returned head has
    /// the full length.
    #[inline]
    pub fn read_into(&mut self, out: &mut [u8]) -> Option<FrameHead> {
        let Some((head, body)) = self.contiguous_plain_frame() else { return self.read_into_slow(out) };
        let n = head.len.min(out.len());
        // SAFETY: the body's bytes are published and contiguous; `out` does not overlap them.
        unsafe { copy_body(body, out.as_mut_ptr(), n) };
        self.consume_contiguous(head);
        Some(head)
    }

    /// Reads the next frame into `out` if it is the last part of a message and known to be
    /// contiguous. Bytes that do not fit are dropped. Returns the full length.
    #[inline(always)]
    pub fn read_last_into(&mut self, out: &mut [u8]) -> Option<usize> {
        let (head, body) = self.contiguous_frame().filter(|(head, _)| head.is_plain_end())?;
        // SAFETY: as in `read_into`.
        unsafe { copy_body(body, out.as_mut_ptr(), head.len.min(out.len())) };
        self.consume_contiguous(head);
        Some(head.len)
    }

    /// Reads the next frame into a message (see `read_message`) if it is the last part of a message
    /// and known to be contiguous. Returns the length, or `None` for any other frame or if there is
    /// no memory.
    #[inline(always)]
    pub fn read_last(&mut self, out: &mut Message) -> Option<usize> {
        let (head, body) = self.contiguous_frame()?;
        if !head.is_plain_end() {
            return if head.flags == PARCEL && self.parcels {
                self.read_last_parcel(body, out)
            } else {
                None
            };
        }
        // SAFETY: as in `read_message`.
        out.assign(unsafe { std::slice::from_raw_parts(body, head.len) }).ok()?;
        out.set_more(false);
        self.consume_contiguous(head);
        Some(head.len)
    }

    /// Reads a contiguous parcel, a frame that carries a whole message by reference, for
    /// `read_last`.
    #[inline(never)]
    fn read_last_parcel(&mut self, body: *const u8, out: &mut Message) -> Option<usize> {
        // SAFETY: a parcel, published, and skipped right after.
        unsafe { out.unpack(body) };
        let len = out.len();
        self.extra = self.extra.wrapping_add(parcel::extra(len));
        self.consume_contiguous(FrameHead { flags: PARCEL, len: BODY });
        self.after_parcel();
        Some(len)
    }

    /// Skips a parcel and moves its message to `out`, except for the metadata. Returns the head of
    /// the message's frame.
    fn take_parcel(&mut self, head: FrameHead, mut body: Position, out: &mut Message) -> FrameHead {
        // SAFETY: a parcel, published, and skipped right after.
        unsafe { out.unpack(body.at) };
        body.at = body.at.wrapping_add(head.len);
        self.extra = self.extra.wrapping_add(parcel::extra(out.len()));
        self.consume(head, body);
        self.after_parcel();
        out.set_more(head.flags & frame::MORE != 0);
        head.of_parcel(out.len())
    }

    /// Called after a parcel was read: gives credit if it is due, and prefetches the next parcel.
    #[inline]
    fn after_parcel(&mut self) {
        if self.extra.wrapping_sub(self.extra_told).cast_signed() >= CREDIT_EXTRA as i64 {
            self.credit();
        }
        // SAFETY: everything up to `stop` is published.
        unsafe { parcel::prefetch(self.position.at, self.stop.addr() - self.position.at.addr()) };
    }

    #[inline(never)]
    fn read_into_slow(&mut self, out: &mut [u8]) -> Option<FrameHead> {
        let (head, mut body) = self.find()?;
        if head.is_parcel() {
            let mut message = Message::new();
            let head = self.take_parcel(head, body, &mut message);
            let n = head.len.min(out.len());
            out[..n].copy_from_slice(&message.as_slice()[..n]);
            return Some(head);
        }
        let n = head.len.min(out.len());
        // SAFETY: the whole frame is published.
        unsafe { body.copy(&mut out[..n]) };
        // SAFETY: as above.
        unsafe { body.skip((head.len - n) as u64) };
        self.consume(head, body);
        Some(head)
    }

    /// Reads the next frame into a message. The message's former content is released, except for
    /// the metadata: see `Message::set_metadata`. A body by reference is moved and not copied. If
    /// there is no memory for a copy, the frame stays the next one.
    #[inline]
    pub fn read_message(&mut self, out: &mut Message) -> Result<Option<FrameHead>, NoMemory> {
        let Some((head, body)) = self.contiguous_plain_frame() else { return self.read_message_slow(out) };
        // SAFETY: the body's bytes are published and contiguous.
        out.assign(unsafe { std::slice::from_raw_parts(body, head.len) })?;
        out.set_more(head.flags & frame::MORE != 0);
        self.consume_contiguous(head);
        Ok(Some(head))
    }

    #[inline(never)]
    fn read_message_slow(&mut self, out: &mut Message) -> Result<Option<FrameHead>, NoMemory> {
        let Some((head, mut body)) = self.find() else { return Ok(None) };
        if head.is_parcel() {
            return Ok(Some(self.take_parcel(head, body, out)));
        }
        // SAFETY: the whole frame is published.
        let together = head.len > 0 && unsafe { body.next_run(head.len as u64) } == head.len;
        // SAFETY: a valid node.
        if together && unsafe { (*body.node).external } {
            body.at = body.at.wrapping_add(head.len);
            // SAFETY: an external node holds exactly one body, and it is ours once it is published.
            *out = unsafe { Node::take_message(body.node) };
        } else {
            // SAFETY: all of the body is written below.
            *out = unsafe { Message::uninit(head.len) }.ok_or(NoMemory)?;
            // SAFETY: the whole frame is published, and the new message has room for its body.
            unsafe { body.copy_to(out.data_ptr(), head.len) };
        }
        out.set_more(head.flags & frame::MORE != 0);
        self.consume(head, body);
        Ok(Some(head))
    }

    /// Returns the body of the next frame in two slices, without consuming it. If the body has more
    /// than two pieces, it is joined, for which there must be memory.
    pub fn peek(&mut self) -> Result<Option<[&[u8]; 2]>, NoMemory> {
        let Some((head, mut body)) = self.find() else { return Ok(None) };
        if head.is_parcel() {
            // SAFETY: published, and not taken out while `self` is borrowed.
            let bytes = unsafe { Message::packed_body(body.at) };
            return Ok(Some([bytes, &[]]));
        }
        let (mut slices, mut count) = ([&[][..]; 2], 0);
        let mut again = body;
        let note = |piece| {
            if count < 2 {
                slices[count] = piece;
            }
            count += 1;
        };
        // SAFETY: the whole frame is published, and its bytes are not released while `self` is
        // borrowed.
        unsafe { body.pieces(head.len as u64, note) };
        if count > 2 {
            self.scratch.clear();
            self.scratch.try_reserve(head.len)?;
            let scratch = &mut self.scratch;
            // SAFETY: as above.
            unsafe { again.pieces(head.len as u64, |piece| scratch.extend_from_slice(piece)) };
            slices = [&self.scratch, &[]];
        }
        Ok(Some(slices))
    }

    /// Drops the next frame.
    #[inline]
    pub fn skip(&mut self) -> Option<FrameHead> {
        if let Some((head, _)) = self.contiguous_plain_frame() {
            self.consume_contiguous(head);
            return Some(head);
        }
        let (head, mut body) = self.find()?;
        if head.is_parcel() {
            return Some(self.take_parcel(head, body, &mut Message::new()));
        }
        // SAFETY: the whole frame is published.
        unsafe { body.skip(head.len as u64) };
        self.consume(head, body);
        Some(head)
    }

    /// Returns the messages and bytes of frames read so far.
    #[inline]
    pub fn read_counts(&self) -> (u64, u64) {
        let (messages, bytes) = chain::start();
        let all = self.bytes().wrapping_add(self.extra);
        (self.messages.wrapping_sub(messages), all.wrapping_sub(bytes))
    }

    /// Returns a probe for the counters.
    pub fn probe(&self) -> Probe {
        self.start.shared.probe()
    }

    /// Returns the number of published messages that were not read.
    #[inline]
    pub fn queued(&mut self) -> u64 {
        // Acquire pairs with the Release in the producer's `publish`.
        self.tail = self.start.shared.tail.0.load(Ordering::Acquire);
        // Relaxed: behind the tail; at least the number that it counts.
        self.start.shared.published.0.load(Ordering::Relaxed).wrapping_sub(self.messages)
    }
}

impl Drop for FrameReader {
    fn drop(&mut self) {
        if self.parcels {
            // The last handle drops the unread messages. These two calls tell it where they start.
            self.credit();
            self.start.stop(self.position);
        }
    }
}
