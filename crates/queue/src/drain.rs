//! `ByteDrain`: the end of an outbound chain where the pump takes bytes and hands them to the
//! kernel.
//!
//! Used under the pump lock of a connection. The pump takes bytes in pieces of any size. Credit and
//! memory go back only for whole messages. So after a lost connection, `rewind` can send the partly
//! written message again.

use super::chain;
use super::consumer::Consumer;
use super::producer::Producer;
use super::segment::Position;
use crate::sync::atomic::Ordering;
use std::io::IoSlice;
use tautline_proto::frame;

/// A place in the chain and its byte count.
#[derive(Clone, Copy)]
struct DrainCursor {
    position: Position,
    bytes: u64,
}

impl DrainCursor {
    /// # Safety
    /// At least `n` bytes behind this position are visible to the caller and not released.
    unsafe fn skip(&mut self, n: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.position.skip(n) };
        self.bytes = self.bytes.wrapping_add(n);
    }
}

/// The consuming end of an outbound chain.
pub struct ByteDrain {
    start: Consumer,
    /// The tail word as last loaded.
    tail: u64,
    /// End of the bytes that the pump has taken.
    taken: DrainCursor,
    /// The frame boundary from which the search for message boundaries continues: `message_end <=
    /// frame <= taken`.
    frame: DrainCursor,
    /// End of the last message that was taken as a whole.
    message_end: DrainCursor,
    /// Count of messages up to `message_end`.
    messages: u64,
}

// SAFETY: the places lie in nodes that belong to the consuming side, which one thread uses at a
// time.
unsafe impl Send for ByteDrain {}

impl ByteDrain {
    pub(super) fn new(start: Consumer) -> Self {
        let (messages, bytes) = chain::start();
        let place = DrainCursor { position: Position::NOWHERE, bytes };
        ByteDrain {
            start,
            tail: chain::pack(messages, bytes),
            taken: place,
            frame: place,
            message_end: place,
            messages,
        }
    }

    /// Returns the number of bytes that are published and not taken yet.
    #[inline]
    pub fn pending(&mut self) -> u64 {
        // Acquire pairs with the Release in the producer's `publish`.
        self.tail = self.start.shared.tail.0.load(Ordering::Acquire);
        let pending = chain::bytes_ahead(self.tail, self.taken.bytes);
        if pending > 0 && self.taken.position.node.is_null() {
            // SAFETY: bytes are published.
            let position = unsafe { self.start.begin() };
            self.taken.position = position;
            self.frame.position = position;
            self.message_end.position = position;
        }
        pending
    }

    /// Returns the number of pending bytes at the last load of the tail. Loads the tail again if
    /// that number is 0.
    fn known_pending_bytes(&mut self) -> u64 {
        match chain::bytes_ahead(self.tail, self.taken.bytes) {
            0 => self.pending(),
            known => known,
        }
    }

    /// Fills `out` with the pending bytes from the current position on. Returns the number of
    /// slices and of their bytes.
    pub fn slices<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> (usize, u64) {
        let known = self.known_pending_bytes();
        let mut position = self.taken.position;
        let (mut count, mut bytes) = (0, 0);
        while count < out.len() && bytes < known {
            // SAFETY: `known` bytes are published and not released before `self` is used again,
            // which `out` borrows until then.
            let piece = unsafe { position.piece(known - bytes) };
            out[count] = IoSlice::new(piece);
            position.at = position.at.wrapping_add(piece.len());
            bytes += piece.len() as u64;
            count += 1;
        }
        (count, bytes)
    }

    /// Appends up to `max` pending bytes to `out`, without taking them.
    #[cfg(test)]
    pub(crate) fn peek_copy(&mut self, max: usize, out: &mut Vec<u8>) -> u64 {
        let n = self.known_pending_bytes().min(max as u64);
        let mut position = self.taken.position;
        // SAFETY: `n` bytes are published and not released.
        unsafe { position.pieces(n, |piece| out.extend_from_slice(piece)) };
        n
    }

    /// Takes `n` of the pending bytes after they were written. Credits the messages that are now
    /// completely written.
    pub fn advance(&mut self, n: u64) {
        let known = chain::bytes_ahead(self.tail, self.taken.bytes);
        debug_assert!(n <= known);
        let n = n.min(known);
        if n == 0 {
            return;
        }
        // SAFETY: `n` bytes are published and not released.
        unsafe { self.taken.skip(n) };
        if n == known && known < chain::COUNTABLE {
            // Publications end at message boundaries, and the tail counts the messages. So there is
            // no need to look at the frames.
            self.frame = self.taken;
            self.message_end = self.taken;
            self.messages = self.messages.wrapping_add(chain::messages_ahead(self.tail, self.messages));
            self.credit();
        } else if self.find_message_end() {
            self.credit();
        }
    }

    /// Skips over frame headers up to the last message boundary that was taken. Returns true if
    /// `message_end` moved.
    fn find_message_end(&mut self) -> bool {
        let before = self.message_end.bytes;
        loop {
            let left = self.taken.bytes.wrapping_sub(self.frame.bytes);
            let mut header = [0; frame::MAX_HEADER];
            let n = left.min(frame::MAX_HEADER as u64) as usize;
            let mut position = self.frame.position;
            // SAFETY: `left` taken bytes lie behind `frame`, not released.
            unsafe { position.copy(&mut header[..n]) };
            // Our own frames are never malformed. A partly taken header is decoded next time.
            let Ok(Some(header)) = frame::decode_header(&header[..n]) else { break };
            let total = header.header_len as u64 + header.body_len;
            if total > left {
                break;
            }
            // SAFETY: all of the frame was taken.
            unsafe { self.frame.skip(total) };
            if header.flags & frame::MORE == 0 {
                self.message_end = self.frame;
                self.messages = self.messages.wrapping_add(u64::from(header.flags & frame::COMMAND == 0));
            }
        }
        self.message_end.bytes != before
    }

    /// Releases everything before `message_end`.
    fn credit(&mut self) {
        // SAFETY: `message_end` only grows, and places before it are unused from now on.
        unsafe { self.start.release(&self.message_end.position) };
        self.start.credit(self.messages, self.message_end.bytes);
    }

    /// Releases all memory if everything was taken. `end` is the other end of the chain.
    pub(super) fn release_memory(&mut self, end: &mut Producer) -> bool {
        if self.pending() > 0
            || self.message_end.bytes != self.taken.bytes
            || !end.release_memory(&mut self.start, self.taken.bytes)
        {
            return false;
        }
        self.taken.position = Position::NOWHERE;
        self.frame = self.taken;
        self.message_end = self.taken;
        true
    }

    /// Called after a lost connection: goes back to the start of the partly taken message.
    pub fn rewind(&mut self) {
        self.taken = self.message_end;
        self.frame = self.message_end;
    }

    /// Returns the number of messages before the one that was taken in part, if there is one.
    pub fn cut(&self) -> Option<u64> {
        (self.taken.bytes != self.message_end.bytes).then_some(self.messages)
    }

    /// Called after `rewind`: drops and credits the first message.
    pub fn drop_first(&mut self) {
        while self.pending() > 0 {
            let mut header = [0; frame::MAX_HEADER];
            let n = self.pending().min(frame::MAX_HEADER as u64) as usize;
            let mut position = self.frame.position;
            // SAFETY: `n` published bytes lie behind `frame`, not released.
            unsafe { position.copy(&mut header[..n]) };
            let Ok(Some(header)) = frame::decode_header(&header[..n]) else { break };
            self.advance(header.header_len as u64 + header.body_len);
            if header.flags & frame::MORE == 0 {
                break;
            }
        }
    }

    /// Drops and credits all published messages, including a partly taken one. Returns their
    /// number.
    pub fn discard(&mut self) -> u64 {
        let (pending, before) = (self.pending(), self.messages);
        self.advance(pending);
        self.messages.wrapping_sub(before)
    }
}
