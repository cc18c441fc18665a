//! `ByteFiller`: the end of an inbound chain where bytes from the kernel arrive and are cut into
//! frames.
//!
//! Used by the holder of the right to read the connection (the socket's owner or the I/O thread).
//! Bytes arrive in any split. The scan skips from header to header over the arrived bytes and
//! publishes whole messages. A body of at least 32 KiB gets its own memory, so that it is read
//! directly to its final place.
//!
//! The peer is not trusted. The length of a frame is checked against the limit as soon as its
//! header has arrived. The memory of a body by reference is not touched before its bytes arrive.

use super::BY_REFERENCE;
use super::consumer::Consumer;
use super::producer::{Producer, WITH_EXTERNAL};
use super::segment::{Buffer, FIRST, LARGE, Position, SMALL, trace};
use crate::message::Message;
use crate::sync::atomic::Ordering;
use std::io;
use std::mem::MaybeUninit;
use tautline_mem::reserve::NoMemory;
use tautline_proto::ProtocolError;
use tautline_proto::frame::{self, Header};

/// Up to this many bytes of an incomplete frame are copied to remove the commands before it. The
/// commands must have at least `WORTH_COPYING` bytes.
const COPIED_BEHIND: usize = BY_REFERENCE;
const WORTH_COPYING: u64 = 4096;
/// Longer bodies get their own memory only when a part of them has arrived: a peer that announces a
/// large body must send a part of it. Until then they grow segment by segment.
const BY_REFERENCE_MAX: u64 = if cfg!(test) { 256 * 1024 } else { 64 * 1024 * 1024 };
/// The part of a large body that must have arrived: one byte in this many.
const REQUIRED_PREFIX_SHARE: u64 = 16;
/// Limit for the bytes read beyond a body by reference. Small, because the next body's part of
/// these bytes must be copied.
const BEHIND_BODY: usize = 4096;
/// If the room at the end of a segment is smaller, it is not worth a system call.
const LEAST_ROOM: usize = if cfg!(loom) { 4 } else { 128 };

/// Room for arriving bytes: two runs of possibly uninitialised memory, to be written in order.
pub(crate) type ReadSpace<'a> = [&'a mut [MaybeUninit<u8>]; 2];

/// Copies as many bytes as there is room for. Returns the written parts.
pub(super) fn copy<'a>(bytes: &[u8], room: ReadSpace<'a>) -> [&'a mut [u8]; 2] {
    let mut rest = bytes;
    room.map(|to| {
        let (head, tail) = rest.split_at(rest.len().min(to.len()));
        rest = tail;
        let to = &mut to[..head.len()];
        to.iter_mut().zip(head).for_each(|(to, from)| _ = to.write(*from));
        // SAFETY: all of it is initialised now.
        unsafe { &mut *(std::ptr::from_mut(to) as *mut [u8]) }
    })
}

/// A scanned frame.
#[derive(Debug, Clone, Copy)]
pub struct ScannedFrame {
    /// Header of the frame.
    pub header: Header,
}

/// The producing end of an inbound chain.
pub struct ByteFiller {
    end: Producer,
    /// The frame boundary that the scan reached, and its byte count.
    scan: Position,
    scan_bytes: u64,
    /// The header at the scan position, if it was decoded and checked but the body is incomplete.
    partial: Option<Header>,
    /// The body of the frame scanned last.
    last: Option<(Position, u64)>,
    /// The end of the last complete message, while a multipart message is incomplete.
    last_message_end: Option<(Position, u64)>,
    /// The end of the last scanned frame that is for the owner, and its byte count. Only commands
    /// that are not for the owner lie between it and the scan position.
    kept: (Position, u64),
    /// Length of the second slice that `space` lent out.
    lent: usize,
    /// Limit for the bytes of a message: all parts with their headers.
    longest: u64,
    /// Bytes of the scanned parts of an incomplete message.
    message_bytes: u64,
    /// True if there was no memory for the expected body. The filler then offers no room for
    /// further bytes.
    exhausted: bool,
}

// SAFETY: the positions lie behind the mark, in nodes that belong to the producing side, which one
// thread uses at a time.
unsafe impl Send for ByteFiller {}

impl ByteFiller {
    pub(super) fn new(end: Producer) -> Self {
        let scan_bytes = end.bytes();
        ByteFiller {
            end,
            scan: Position::NOWHERE,
            scan_bytes,
            partial: None,
            last: None,
            last_message_end: None,
            kept: (Position::NOWHERE, scan_bytes),
            lent: 0,
            longest: u64::MAX,
            message_bytes: 0,
            exhausted: false,
        }
    }

    /// Sets the limit for the bytes of a message: all parts with their headers.
    pub fn set_longest_message(&mut self, bytes: u64) {
        self.longest = bytes;
    }

    /// Marks this queue as one of many: it keeps its segments small while they are read.
    pub fn set_lean(&mut self) {
        self.end.lean = true;
    }

    /// Calls `read` with room for at most `most` bytes, and again while it would block and `again`
    /// returns true. The room is the rest of the current segment. If that is less than `least`,
    /// there is a second run, which becomes part of the queue only if bytes arrive in it. `read`
    /// returns the written bytes: the beginning of the first run, or all of the first and the
    /// beginning of the second. Returns the number of these bytes, or OutOfMemory if there is no
    /// room.
    pub fn fill(
        &mut self,
        least: usize,
        most: usize,
        mut read: impl for<'a> FnMut(ReadSpace<'a>) -> io::Result<[&'a mut [u8]; 2]>,
        mut again: impl FnMut() -> bool,
    ) -> io::Result<usize> {
        let [mut first, mut second] = self.space(least).ok_or(io::ErrorKind::OutOfMemory)?;
        if first.len() + second.len() > most {
            let in_first = most.min(first.len());
            first = &mut first[..in_first];
            second = &mut second[..most - in_first];
        }
        let room = first.len();
        let begin = [first.as_ptr(), second.as_ptr()].map(<*const MaybeUninit<u8>>::cast);
        let result = loop {
            match read([&mut *first, &mut *second]) {
                Ok(written) => {
                    let in_order = written[1].is_empty() || written[0].len() == room;
                    let is_there = written.iter().zip(begin).all(|(w, at)| w.is_empty() || w.as_ptr() == at);
                    assert!(in_order && is_there, "bytes were written outside of the lent room");
                    break Ok(written[0].len() + written[1].len());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && again() => {}
                Err(error) => break Err(error),
            }
        };
        // Also after a failure: `commit_read` gives the unused room back. SAFETY: as many bytes are
        // initialised, from the beginning on.
        unsafe { self.commit_read(*result.as_ref().unwrap_or(&0)) };
        result
    }

    /// Returns the room that `fill` lends, or `None` if memory is exhausted. The caller must call
    /// `commit_read` afterwards, even if no bytes came.
    pub(super) fn space(&mut self, min_total: usize) -> Option<ReadSpace<'_>> {
        if self.exhausted {
            return None;
        }
        if self.end.unlinked_node().is_none()
            && self.end.node_space() < LEAST_ROOM.min(min_total)
            && !self.in_body()
        {
            // More than a small message: it is worth a system call.
            self.end.grow(FIRST - size_of::<Buffer>()).ok()?;
            self.start_scan();
        }
        let room = self.end.node_space();
        let (next, len) = if room >= min_total {
            (self.end.at, 0)
        } else if let Some(behind) = self.end.unlinked_node() {
            // SAFETY: placed behind the external node, with the rest of the buffer free behind it.
            let behind = unsafe { &*behind };
            // SAFETY: the buffer of a valid node.
            let limit = unsafe { Buffer::limit(behind.buffer) };
            (behind.start, (limit.addr() - behind.start.addr()).min(BEHIND_BODY))
        } else {
            let size = if min_total - room > SMALL { LARGE } else { SMALL };
            let buffer = self.end.spare(size)?;
            // SAFETY: the spare buffer is ours and empty.
            let (start, limit) = unsafe { ((*Buffer::node(buffer)).start, Buffer::limit(buffer)) };
            (start, limit.addr() - start.addr())
        };
        self.lent = len;
        // SAFETY: both runs of memory belong to the producer alone, do not overlap and are
        // allocated. They are lent out as long as `self` is.
        let second = unsafe { std::slice::from_raw_parts_mut(next.cast(), len) };
        if room == 0 {
            return Some([&mut [], second]);
        }
        // SAFETY: as above.
        Some([unsafe { std::slice::from_raw_parts_mut(self.end.at.cast(), room) }, second])
    }

    /// Returns the part of this room that lies in the current segment.
    #[inline]
    pub fn segment_space(&self) -> usize {
        self.end.node_space()
    }

    /// True if the next bytes are read directly to their final place.
    #[inline]
    pub fn expects_body(&self) -> bool {
        self.end.unlinked_node().is_some() || self.in_body()
    }

    /// True if the current node is the incomplete body of a frame by reference.
    fn in_body(&self) -> bool {
        self.end.node_space() > 0 && self.end.in_external()
    }

    /// Notes that `n` bytes have arrived in the slices of the last `space`, the first slice before
    /// the second. Gives the second segment back if it was not needed, so that an idle connection
    /// holds no segment.
    ///
    /// # Safety
    /// The first `n` bytes of these slices are initialised.
    pub(super) unsafe fn commit_read(&mut self, n: usize) {
        let room = self.end.node_space();
        assert!(n <= room + self.lent, "more bytes were written than there was room for");
        self.lent = 0;
        self.record_arrival(n.min(room));
        if n > room {
            self.end.enter_ready();
            self.start_scan();
            self.record_arrival(n - room);
        } else {
            self.end.drop_spare();
        }
    }

    /// Notes that bytes arrived in the current node.
    fn record_arrival(&mut self, n: usize) {
        if n > 0 {
            trace::wrote(self.end.node, self.end.at, n);
            self.end.at = self.end.at.wrapping_add(n);
        }
    }

    /// Starts the scan at the start of the first node.
    fn start_scan(&mut self) {
        if self.scan.node.is_null() {
            self.scan = self.end.published_end();
            self.kept = (self.scan, self.scan_bytes);
        }
    }

    /// Adds bytes that were not read by `fill`. After an error (OutOfMemory), a part of the bytes
    /// was added.
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let least = bytes.len().min(SMALL);
            let copied = self.fill(least, bytes.len(), |room| Ok(copy(bytes, room)), || false)?;
            bytes = &bytes[copied..];
        }
        Ok(())
    }

    /// Returns the number of bytes that arrived and were not scanned.
    #[inline]
    pub fn unscanned(&self) -> usize {
        self.end.bytes().wrapping_sub(self.scan_bytes) as usize
    }

    /// Scans the next frame if it is complete. `max_msg_size` limits its body. Both `max_msg_size`
    /// and the limit of the whole message apply as soon as the header has arrived.
    #[inline]
    pub fn next_frame(&mut self, max_msg_size: Option<u64>) -> Result<Option<ScannedFrame>, ProtocolError> {
        let arrived = self.end.bytes().wrapping_sub(self.scan_bytes);
        if arrived < 2 {
            return Ok(None);
        }
        let header = match self.partial {
            Some(header) => header,
            None => {
                let Some(header) = self.header(arrived)? else { return Ok(None) };
                frame::check_size(&header, max_msg_size)?;
                self.check_message(&header)?;
                header
            }
        };
        let total = header.body_len.saturating_add(header.header_len as u64);
        if arrived < total {
            // A body of which no byte has arrived may come as a whole (`adopt_body`).
            if arrived > header.header_len as u64 {
                let first_look = self.partial.replace(header).is_none();
                if first_look || (header.body_len > BY_REFERENCE_MAX && !self.end.in_external()) {
                    self.expect_body(&header, arrived);
                }
            }
            return Ok(None);
        }
        self.partial = None;
        if header.flags & frame::MORE != 0 {
            self.last_message_end.get_or_insert(self.kept);
            self.message_bytes = self.message_bytes.saturating_add(total);
        } else if header.flags & frame::COMMAND == 0 {
            self.last_message_end = None;
            self.message_bytes = 0;
        }
        let mut body = self.scan;
        if self.scan.node == self.end.node {
            body.at = body.at.wrapping_add(header.header_len);
            self.scan.at = self.scan.at.wrapping_add(total as usize);
        } else {
            // SAFETY: the whole frame has arrived.
            unsafe { body.skip(header.header_len as u64) };
            // SAFETY: as above.
            unsafe { self.scan.skip(total) };
        }
        self.scan_bytes = self.scan_bytes.wrapping_add(total);
        if header.flags & frame::COMMAND == 0 {
            self.keep_last();
        }
        self.last = Some((body, header.body_len));
        Ok(Some(ScannedFrame { header }))
    }

    /// Returns an error if this part would make the message too large.
    #[inline]
    fn check_message(&self, header: &Header) -> Result<(), ProtocolError> {
        let size =
            self.message_bytes.saturating_add(header.body_len).saturating_add(header.header_len as u64);
        if size > self.longest && header.flags & frame::COMMAND == 0 {
            return Err(ProtocolError::TooLarge { size, limit: self.longest });
        }
        Ok(())
    }

    /// Scans the next messages of short parts, at most `most`, like calls of `next_frame` but
    /// faster. Returns their number. Three kinds of messages are left to `next_frame`: longer
    /// messages, messages that are not contiguous, and messages with a part that `judge` rejects.
    /// `judge` gets a flag that is true if more parts follow, and the length of the part.
    #[inline]
    pub fn next_short_messages(
        &mut self,
        most: u32,
        max_msg_size: Option<u64>,
        mut judge: impl FnMut(bool, u64) -> bool,
    ) -> u32 {
        // Contiguous bytes are never longer than a segment.
        let limited =
            max_msg_size.is_some_and(|limit| limit < u64::from(u8::MAX)) || self.longest < LARGE as u64;
        let arrived = self.end.bytes().wrapping_sub(self.scan_bytes);
        if self.partial.is_some() || limited || arrived < 2 {
            return 0;
        }
        let mut start = self.scan;
        // SAFETY: `arrived` bytes lie behind the scan position.
        let mut left = unsafe { start.next_run(arrived) };
        // A message whose last part has not arrived does not count.
        let (mut at, mut end, mut count, mut last_len) = (start.at, start.at, 0, 0);
        while count < most && left >= 2 {
            // SAFETY: `left` bytes lie together behind `at`.
            let [flags, len] = unsafe { at.cast::<[u8; 2]>().read() };
            let total = usize::from(len) + 2;
            if flags & !frame::MORE != 0 || total > left || !judge(flags != 0, u64::from(len)) {
                break;
            }
            (at, left) = (at.wrapping_add(total), left - total);
            if flags == 0 {
                (end, last_len) = (at, usize::from(len));
                count += 1;
            }
        }
        if count > 0 {
            self.scan = Position { at: end, ..start };
            self.scan_bytes = self.scan_bytes.wrapping_add((end.addr() - start.at.addr()) as u64);
            self.last_message_end = None;
            self.keep_last();
            let body = Position { at: end.wrapping_sub(last_len), ..start };
            self.last = Some((body, last_len as u64));
        }
        count
    }

    /// Decodes the header at the scan position.
    #[inline]
    fn header(&self, arrived: u64) -> Result<Option<Header>, ProtocolError> {
        let n = arrived.min(frame::MAX_HEADER as u64) as usize;
        if self.scan.node == self.end.node {
            // SAFETY: `arrived` bytes lie behind the scan position.
            return frame::decode_header(unsafe { std::slice::from_raw_parts(self.scan.at, n) });
        }
        let mut bytes = [0; frame::MAX_HEADER];
        let mut position = self.scan;
        // SAFETY: as above.
        unsafe { position.copy(&mut bytes[..n]) };
        frame::decode_header(&bytes[..n])
    }

    /// Called when the header at the scan position announces more bytes than have arrived. A large
    /// body gets its own memory, and its arrived bytes move there.
    #[cold]
    fn expect_body(&mut self, header: &Header, arrived: u64) {
        let arrived = arrived - header.header_len as u64;
        let most = arrived.saturating_mul(REQUIRED_PREFIX_SHARE).max(BY_REFERENCE_MAX);
        if header.body_len < BY_REFERENCE as u64 || header.body_len > most {
            return;
        }
        // SAFETY: the node is published only when all of the body has arrived.
        let message = usize::try_from(header.body_len).ok().and_then(|len| unsafe { Message::uninit(len) });
        // Get the buffer that the node may need before any bytes are cut off.
        let (Some(mut message), Some(_)) = (message, self.end.spare(WITH_EXTERNAL)) else {
            self.exhausted = true;
            return;
        };
        let mut body = self.scan;
        // SAFETY: the header has arrived.
        unsafe { body.skip(header.header_len as u64) };
        let cut = body;
        // SAFETY: `arrived` bytes of the body have arrived, and the body is longer.
        unsafe { body.copy_to(message.data_ptr(), arrived as usize) };
        let bytes = self.scan_bytes.wrapping_add(header.header_len as u64);
        // SAFETY: these bytes are unpublished, and the header's last byte lies in a node that is
        // not external.
        unsafe { self.end.cut(cut, bytes) };
        self.exhausted = self.end.enter_external(&mut message, arrived as usize).is_err();
        self.end.drop_spare();
    }

    /// True if the next bytes are the body of a message's part, of this length.
    pub fn awaits_body(&self, length: usize) -> bool {
        let arrived = self.end.bytes().wrapping_sub(self.scan_bytes);
        self.partial.is_none()
            && arrived >= 2
            && self.header(arrived).ok().flatten().is_some_and(|header| {
                arrived == header.header_len as u64
                    && header.body_len == length as u64
                    && header.flags & frame::COMMAND == 0
            })
    }

    /// Adds the body that is awaited (`awaits_body`), without a copy.
    ///
    /// # Errors
    /// OutOfMemory.
    pub fn adopt_body(&mut self, mut body: Message) -> io::Result<()> {
        let length = body.len();
        let adopted = self
            .end
            .spare(WITH_EXTERNAL)
            .ok_or(NoMemory)
            .and_then(|_| self.end.enter_external(&mut body, length));
        self.end.drop_spare();
        adopted.map_err(|NoMemory| io::ErrorKind::OutOfMemory.into())
    }

    /// Appends the body of the frame that was scanned last. The frame must be unpublished, and
    /// there must be memory for it.
    #[inline]
    pub fn body_of_last(&self, out: &mut Vec<u8>) -> Result<(), NoMemory> {
        if let Some((mut body, len)) = self.last {
            out.try_reserve_exact(usize::try_from(len).map_err(|_| NoMemory)?)?;
            // SAFETY: the frame has arrived and is not published, so it was not released.
            unsafe { body.pieces(len, |piece| out.extend_from_slice(piece)) };
        }
        Ok(())
    }

    /// Marks the frame that was scanned last as a frame for the owner. Each part of a message must
    /// be marked. For a command, the caller decides.
    #[inline]
    pub fn keep_last(&mut self) {
        self.kept = (self.scan, self.scan_bytes);
    }

    /// Publishes everything up to the last scanned message boundary, as `messages` more messages:
    /// frames with neither MORE nor COMMAND. A command may come between the parts of a message, and
    /// does not end the message. Commands behind the boundary that are not for the owner stay
    /// hidden, because a consumer that sees a frame expects a message.
    #[inline]
    pub fn publish_scanned(&mut self, messages: u32) {
        self.last = None;
        let (position, bytes) = self.last_message_end.unwrap_or(self.kept);
        if !position.node.is_null() {
            self.end.publish_to(position, bytes, u64::from(messages));
        }
    }

    /// Cuts off the last commands that are not for the owner. So a peer that sends only commands
    /// (PING), even between the parts of a message, does not fill memory.
    pub fn forget_commands(&mut self) {
        let (kept, kept_bytes) = self.kept;
        let commands = self.scan_bytes.wrapping_sub(kept_bytes);
        let unfinished = self.unscanned();
        if commands == 0 || kept.node.is_null() || self.end.in_external() {
            return;
        }
        if unfinished > 0 && (commands < WORTH_COPYING || unfinished > COPIED_BEHIND) {
            return;
        }
        let mut copy = Vec::new();
        if copy.try_reserve_exact(unfinished).is_err() {
            self.exhausted = true;
            return;
        }
        let mut position = self.scan;
        // SAFETY: `unfinished` bytes have arrived behind the scan position, and are not published.
        unsafe { position.pieces(unfinished as u64, |piece| copy.extend_from_slice(piece)) };
        // SAFETY: at or behind the mark: all bytes published since were for the owner.
        unsafe { self.end.cut(kept, kept_bytes) };
        self.scan = kept;
        self.scan_bytes = kept_bytes;
        self.partial = None;
        self.last = None;
        // These bytes are fewer than were cut off. If there is no memory even now, there is no
        // memory for later bytes.
        self.exhausted |= self.append(&copy).is_err();
    }

    /// Releases all memory if the consumer, which has read `read` bytes, has finished everything
    /// that has arrived.
    pub(super) fn release_memory(&mut self, consumer: &mut Consumer, read: u64) -> bool {
        if self.unscanned() > 0 || self.last_message_end.is_some() || !self.end.release_memory(consumer, read)
        {
            return false;
        }
        self.scan = Position::NOWHERE;
        self.kept = (Position::NOWHERE, self.scan_bytes);
        self.last = None;
        self.lent = 0;
        true
    }

    /// Returns the number of bytes that have arrived and are not published.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> u64 {
        super::chain::bytes_behind(self.end.shared.tail.0.load(Ordering::Relaxed), self.end.bytes())
    }

    /// Returns the number of published messages that the consumer has not credited.
    #[inline]
    pub fn backlog(&self) -> u32 {
        self.end.in_flight().try_into().unwrap_or(u32::MAX)
    }

    /// Returns the number of published bytes that the consumer has not credited.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.end.unconsumed()
    }

    /// Called after a lost connection: drops the unpublished bytes.
    pub fn truncate_to_published(&mut self) {
        let scan = self.end.published_end();
        if scan.node.is_null() {
            self.exhausted = false;
            return;
        }
        // Relaxed: own, the tail.
        let published = self.end.shared.tail.0.load(Ordering::Relaxed);
        // SAFETY: the mark is where publishing stopped, at the end of a frame.
        unsafe { self.end.cut(scan, published) };
        self.scan = scan;
        self.scan_bytes = self.end.bytes();
        self.kept = (self.scan, self.scan_bytes);
        self.partial = None;
        self.last = None;
        self.last_message_end = None;
        self.message_bytes = 0;
        self.lent = 0;
        self.exhausted = false;
    }

    /// Frees the memory held for the next read. Call it when a connection goes idle.
    pub fn release_spare(&mut self) {
        self.lent = 0;
        self.end.release_spare();
    }
}
