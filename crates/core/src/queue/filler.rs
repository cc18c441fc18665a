//! `ByteFiller`: the end of an inbound chain where bytes from the kernel arrive and are cut into
//! frames.
//!
//! Used by the holder of the right to read the connection (the socket's owner or the I/O thread).
//! Bytes arrive in any split; the scan hops from header to header over what has arrived; whole
//! messages are published. A body of 32 KiB and more gets memory of its own, so that it is read
//! straight to where it stays.
//!
//! The peer is not trusted: a frame's length is checked against the limit as soon as its header is
//! there, and of a body by reference no memory is touched before its bytes arrive.

use super::BY_REFERENCE;
use super::consumer::Consumer;
use super::producer::{Producer, WITH_EXTERNAL};
use super::segment::{Buffer, FIRST, LARGE, Position, SMALL, trace};
use crate::error::NoMemory;
use crate::message::Message;
use crate::sync::atomic::Ordering;
use std::io;
use std::mem::MaybeUninit;
use tautline_proto::ProtocolError;
use tautline_proto::frame::{self, Header};

/// So much of an unfinished frame is copied to get rid of the commands before it, if they are at
/// least so long.
const COPIED_BEHIND: usize = BY_REFERENCE;
const WORTH_COPYING: u64 = 4096;
/// Longer bodies get memory of their own only when a part of them has arrived: a peer that
/// announces much has to send some of it. Until then they grow segment by segment.
const BY_REFERENCE_MAX: u64 = if cfg!(test) { 256 * 1024 } else { 64 * 1024 * 1024 };
/// That part: one byte in this many.
const FORETASTE: u64 = 16;
/// What is read beyond a body by reference: little, since the next body's part of it has to be
/// copied.
const BEHIND_BODY: usize = 4096;
/// Less room than this at the end of a segment is not worth a system call.
const LEAST_ROOM: usize = if cfg!(loom) { 4 } else { 128 };

/// Room for bytes that arrive: two runs of memory that need not be initialised, to be written in
/// turn.
pub(crate) type Room<'a> = [&'a mut [MaybeUninit<u8>]; 2];

/// Copies as many of the bytes as there is room for; what was written.
pub(super) fn copy<'a>(bytes: &[u8], room: Room<'a>) -> [&'a mut [u8]; 2] {
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

/// A frame that the scan went over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanned {
    /// Its header.
    pub(crate) header: Header,
}

/// The producing end of an inbound chain.
pub(crate) struct ByteFiller {
    end: Producer,
    /// The frame boundary up to which the scan got, and its count of bytes.
    scan: Position,
    scan_bytes: u64,
    /// The header at the scan position, when it was decoded and checked but the body is not
    /// complete.
    partial: Option<Header>,
    /// The body of the frame scanned last.
    last: Option<(Position, u64)>,
    /// The end of what is for the owner before the message whose later parts the scan has not seen
    /// yet.
    begun: Option<(Position, u64)>,
    /// The end of the last frame that was scanned and is for the owner, and its count of bytes:
    /// nothing but commands for others lies between it and the scan position.
    kept: (Position, u64),
    /// Length of the second slice that `space` lent out.
    lent: usize,
    /// Most bytes of a message, all of its parts with their headers.
    longest: u64,
    /// How many the parts have that were scanned of an unfinished message.
    so_far: u64,
    /// There was no memory for the body that is expected: there is no room for anything more.
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
            begun: None,
            kept: (Position::NOWHERE, scan_bytes),
            lent: 0,
            longest: u64::MAX,
            so_far: 0,
            exhausted: false,
        }
    }

    /// Sets how many bytes a message may have, all of its parts with their headers.
    pub(crate) fn set_longest_message(&mut self, bytes: u64) {
        self.longest = bytes;
    }

    /// One queue of many: keeps its segments small as long as they are read.
    pub(crate) fn set_lean(&mut self) {
        self.end.lean = true;
    }

    /// Has `read` put bytes into room for them, at most `most`, and again if it would block, as
    /// long as `again` says so. The room is what is left of the current segment, and, if that is
    /// less than `least`, a further one that becomes part of the queue only if bytes land in it.
    /// `read` returns what it has written, which is the beginning of the first, or all of it and
    /// the beginning of the second. How many bytes these are. OutOfMemory if there is no room to be
    /// had.
    pub(crate) fn fill(
        &mut self,
        least: usize,
        most: usize,
        mut read: impl for<'a> FnMut(Room<'a>) -> io::Result<[&'a mut [u8]; 2]>,
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
                    assert!(in_order && is_there, "bytes elsewhere than in the room for them");
                    break Ok(written[0].len() + written[1].len());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && again() => {}
                Err(error) => break Err(error),
            }
        };
        // Also after a failure: it gives the room that was not used back.
        // SAFETY: as many bytes are initialised, from the beginning on.
        unsafe { self.filled(*result.as_ref().unwrap_or(&0)) };
        result
    }

    /// The room that `fill` lends, or `None` if memory is exhausted. Followed by `filled`, also
    /// when nothing came.
    pub(super) fn space(&mut self, min_total: usize) -> Option<Room<'_>> {
        if self.exhausted {
            return None;
        }
        if self.end.behind().is_none() && self.end.room() < LEAST_ROOM.min(min_total) && !self.in_body() {
            // More than a small message: it is worth a system call.
            self.end.grow(FIRST - size_of::<Buffer>()).ok()?;
            self.start_scan();
        }
        let room = self.end.room();
        let (next, len) = if room >= min_total {
            (self.end.at, 0)
        } else if let Some(behind) = self.end.behind() {
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
        // SAFETY: both runs of memory are the producer's alone, apart from each other and
        // allocated. They are lent out as long as `self` is.
        let second = unsafe { std::slice::from_raw_parts_mut(next.cast(), len) };
        if room == 0 {
            return Some([&mut [], second]);
        }
        // SAFETY: as above.
        Some([unsafe { std::slice::from_raw_parts_mut(self.end.at.cast(), room) }, second])
    }

    /// How much of that there is in the current segment.
    pub(crate) fn room(&self) -> usize {
        self.end.room()
    }

    /// Whether what comes next is read straight to where it stays.
    pub(crate) fn expects_body(&self) -> bool {
        self.end.behind().is_some() || self.in_body()
    }

    /// Whether the current node is the body of a frame by reference that is not complete.
    fn in_body(&self) -> bool {
        self.end.room() > 0 && self.end.in_external()
    }

    /// `n` bytes have arrived in the slices of the last `space`, the first one before the second.
    /// Gives the further segment back if it was not needed, so that an idle connection holds none.
    ///
    /// # Safety
    /// As many bytes of them are initialised.
    pub(super) unsafe fn filled(&mut self, n: usize) {
        let room = self.end.room();
        assert!(n <= room + self.lent, "more bytes than there was space for");
        self.lent = 0;
        self.landed(n.min(room));
        if n > room {
            self.end.enter_ready();
            self.start_scan();
            self.landed(n - room);
        } else {
            self.end.drop_spare();
        }
    }

    /// Bytes landed in the current node.
    fn landed(&mut self, n: usize) {
        if n > 0 {
            trace::wrote(self.end.node, self.end.at, n);
            self.end.at = self.end.at.wrapping_add(n);
        }
    }

    /// The scan begins where the first node does.
    fn start_scan(&mut self) {
        if self.scan.node.is_null() {
            self.scan = self.end.mark();
            self.kept = (self.scan, self.scan_bytes);
        }
    }

    /// Adds bytes that arrived elsewhere. After an error, which is OutOfMemory, a part of them.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let least = bytes.len().min(SMALL);
            let copied = self.fill(least, bytes.len(), |room| Ok(copy(bytes, room)), || false)?;
            bytes = &bytes[copied..];
        }
        Ok(())
    }

    /// Bytes that arrived and that the scan has not gone over.
    pub(crate) fn unscanned(&self) -> usize {
        self.end.bytes().wrapping_sub(self.scan_bytes) as usize
    }

    /// Scans the next frame if it is there whole. `max_msg_size` limits its body; that, and the
    /// limit of the whole message, are applied as soon as the header is there.
    #[inline]
    pub(crate) fn next_frame(&mut self, max_msg_size: Option<u64>) -> Result<Option<Scanned>, ProtocolError> {
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
            let first_look = self.partial.replace(header).is_none();
            if first_look || (header.body_len > BY_REFERENCE_MAX && !self.end.in_external()) {
                self.expect_body(&header, arrived);
            }
            return Ok(None);
        }
        self.partial = None;
        if header.flags & frame::MORE != 0 {
            self.begun.get_or_insert(self.kept);
            self.so_far = self.so_far.saturating_add(total);
        } else if header.flags & frame::COMMAND == 0 {
            self.begun = None;
            self.so_far = 0;
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
        Ok(Some(Scanned { header }))
    }

    /// Whether the message may have this part, too.
    #[inline]
    fn check_message(&self, header: &Header) -> Result<(), ProtocolError> {
        let size = self.so_far.saturating_add(header.body_len).saturating_add(header.header_len as u64);
        if size > self.longest && header.flags & frame::COMMAND == 0 {
            return Err(ProtocolError::TooLarge { size, limit: self.longest });
        }
        Ok(())
    }

    /// Scans the messages of short parts that come next, at most `most`: as calls of `next_frame`
    /// would, but quicker. Returns how many there were. What comes behind them is for `next_frame`,
    /// as is one that does not lie together, and one with a part that `judge`, which is told
    /// whether more parts follow and how long this one is, does not want.
    #[inline]
    pub(crate) fn next_short_messages(
        &mut self,
        most: u32,
        max_msg_size: Option<u64>,
        mut judge: impl FnMut(bool, u64) -> bool,
    ) -> u32 {
        // What lies together is never longer than a segment.
        let limited =
            max_msg_size.is_some_and(|limit| limit < u64::from(u8::MAX)) || self.longest < LARGE as u64;
        let arrived = self.end.bytes().wrapping_sub(self.scan_bytes);
        if self.partial.is_some() || limited || arrived < 2 {
            return 0;
        }
        let mut start = self.scan;
        // SAFETY: `arrived` bytes lie behind the scan position.
        let mut left = unsafe { start.run(arrived) };
        // Of a message whose last part has not come nothing counts.
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
            self.begun = None;
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

    /// The header at the scan position announces more than has arrived: a large body gets memory of
    /// its own, and what has arrived of it is moved there.
    #[cold]
    fn expect_body(&mut self, header: &Header, arrived: u64) {
        let arrived = arrived - header.header_len as u64;
        let most = arrived.saturating_mul(FORETASTE).max(BY_REFERENCE_MAX);
        if header.body_len < BY_REFERENCE as u64 || header.body_len > most {
            return;
        }
        // SAFETY: the node is published only when all of the body has arrived.
        let message = usize::try_from(header.body_len).ok().and_then(|len| unsafe { Message::uninit(len) });
        // The buffer that the node may need is at hand before anything is cut off.
        let (Some(mut message), Some(_)) = (message, self.end.spare(WITH_EXTERNAL)) else {
            self.exhausted = true;
            return;
        };
        let mut body = self.scan;
        // SAFETY: the header has arrived.
        unsafe { body.skip(header.header_len as u64) };
        let cut = body;
        // SAFETY: so have `arrived` bytes of the body, which is longer.
        unsafe { body.copy_to(message.data_ptr(), arrived as usize) };
        let bytes = self.scan_bytes.wrapping_add(header.header_len as u64);
        // SAFETY: nothing of it is published, and the header's last byte lies in a node that is not
        // external.
        unsafe { self.end.cut(cut, bytes) };
        self.exhausted = self.end.enter_external(&mut message, arrived as usize).is_err();
        self.end.drop_spare();
    }

    /// Appends the body of the frame that was scanned last, if it is not published yet and there is
    /// memory for it.
    pub(crate) fn body_of_last(&self, out: &mut Vec<u8>) -> Result<(), NoMemory> {
        if let Some((mut body, len)) = self.last {
            out.try_reserve_exact(usize::try_from(len).map_err(|_| NoMemory)?)?;
            // SAFETY: the frame has arrived and is not published, so it was not given up.
            unsafe { body.pieces(len, |piece| out.extend_from_slice(piece)) };
        }
        Ok(())
    }

    /// The frame that was scanned last is for the owner: a part of a message always is, and a
    /// command that the caller says it of.
    pub(crate) fn keep_last(&mut self) {
        self.kept = (self.scan, self.scan_bytes);
    }

    /// Makes everything visible up to the last message boundary that was scanned, as `messages`
    /// more messages (frames with neither MORE nor COMMAND; a command may come between the parts of
    /// a message, and ends nothing). Commands behind it that are not for the owner stay hidden: a
    /// consumer that sees a frame counts on a message.
    pub(crate) fn publish_scanned(&mut self, messages: u32) {
        self.last = None;
        let (position, bytes) = self.begun.unwrap_or(self.kept);
        if !position.node.is_null() {
            self.end.publish_to(position, bytes, u64::from(messages));
        }
    }

    /// Cuts off the commands that came last and are not for the owner, so that a peer that sends
    /// only commands (PING), be it between the parts of a message, does not fill memory.
    pub(crate) fn forget_commands(&mut self) {
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
        // SAFETY: at or behind the mark: what was published since was for the owner.
        unsafe { self.end.cut(kept, kept_bytes) };
        self.scan = kept;
        self.scan_bytes = kept_bytes;
        self.partial = None;
        self.last = None;
        // Less than was cut off; if there is no memory even so, there is none for what follows.
        self.exhausted |= self.append(&copy).is_err();
    }

    /// Gives up all memory if the consumer, which has read `read` bytes, is done with everything
    /// that has arrived.
    pub(super) fn rest(&mut self, consumer: &mut Consumer, read: u64) -> bool {
        if self.unscanned() > 0 || self.begun.is_some() || !self.end.rest(consumer, read) {
            return false;
        }
        self.scan = Position::NOWHERE;
        self.kept = (Position::NOWHERE, self.scan_bytes);
        self.last = None;
        self.lent = 0;
        true
    }

    /// Bytes that have arrived and are not published.
    #[cfg(test)]
    pub(crate) fn pending(&self) -> u64 {
        super::chain::bytes_behind(self.end.shared.tail.0.load(Ordering::Relaxed), self.end.bytes())
    }

    /// Messages that are published and that the consumer has not given credit for.
    pub(crate) fn backlog(&self) -> u32 {
        self.end.in_flight().try_into().unwrap_or(u32::MAX)
    }

    /// Published bytes that the consumer has not given credit for.
    pub(crate) fn unread(&self) -> u64 {
        self.end.unconsumed()
    }

    /// The connection was lost: forgets what is not published.
    pub(crate) fn truncate_to_published(&mut self) {
        let scan = self.end.mark();
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
        self.begun = None;
        self.so_far = 0;
        self.lent = 0;
        self.exhausted = false;
    }

    /// Frees what is held ready for the next read: call it when a connection goes idle.
    pub(crate) fn release_spare(&mut self) {
        self.lent = 0;
        self.end.release_spare();
    }
}
