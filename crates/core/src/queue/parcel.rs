//! Parcels: large bodies between two sockets of one process, each as the message that owns it, in
//! the place of a frame's body.
//!
//! Such a frame is short and lies in one piece, so a body of any length costs little more than one
//! of 64 bytes: no node of its own, no cache lines beyond those of a short message. The byte counts
//! of a chain are those of its frames as they lie there; what the bodies have beyond that, as they
//! would be on the wire, both ends count apart (`extra`).
//!
//! Only chains between two sockets have parcels. The bit that marks one is reserved in RFC 37, and
//! no frame from the network has it: the reader of the network refuses it, and the end of a chain
//! that comes from there does not look for it.

use super::segment::{Position, trace};
use super::writer::SHORT;
use crate::message::Message;
use crate::message::packed::PACKED;
use tautline_proto::frame;

/// The flag of such a frame.
pub(super) const PARCEL: u8 = 0x80;
/// The length of the frame: flags, length, body.
pub(super) const FRAME: usize = 2 + BODY;
/// That of its body.
pub(super) const BODY: usize = PACKED;
const _: () = assert!(BODY < SHORT);

/// How many bytes more a body of this length would take on the wire than its parcel does here.
/// Wraps around: a short one takes fewer.
#[inline]
pub(super) fn extra(len: usize) -> u64 {
    let header = if len < 256 { 2 } else { frame::MAX_HEADER };
    ((header + len) as u64).wrapping_sub(FRAME as u64)
}

/// Writes the frame of a message, which is then empty.
///
/// # Safety
/// `FRAME` bytes at `at` are the caller's to write, and the message is movable.
#[inline(always)]
pub(super) unsafe fn put(at: *mut u8, flags: u8, message: &mut Message) {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<[u8; 2]>().write([flags | PARCEL, BODY as u8]) };
    // SAFETY: as above.
    unsafe { message.pack(at.add(2)) };
}

/// If the `left` bytes at `at` begin with another parcel, what its receiver looks at first is on
/// its way into the cache.
///
/// # Safety
/// `left` bytes at `at` are published to the caller.
#[inline(always)]
pub(super) unsafe fn prefetch(at: *const u8, left: usize) {
    // SAFETY: the caller's promise.
    if left >= FRAME && unsafe { *at } & PARCEL != 0 {
        // SAFETY: a parcel's body is published with it.
        unsafe { Message::prefetch_packed(at.add(2)) };
    }
}

/// Drops the messages of all parcels among the next `n` bytes, which are whole frames or the first
/// parts of a message, and says how much their bodies would have taken beyond that.
///
/// # Safety
/// As for `Position::skip`, and these frames are not looked at afterwards.
pub(super) unsafe fn drop_all(mut position: Position, mut n: u64) -> u64 {
    let mut beyond = 0_u64;
    while n > 0 {
        let mut header = [0; frame::MAX_HEADER];
        let known = n.min(frame::MAX_HEADER as u64) as usize;
        let mut body = position;
        // SAFETY: the caller's promise.
        unsafe { body.copy(&mut header[..known]) };
        let is_parcel = header[0] & PARCEL != 0;
        header[0] &= !PARCEL;
        // Our own frames are never malformed.
        let Ok(Some(header)) = frame::decode_header(&header[..known]) else { break };
        let total = (header.header_len as u64).saturating_add(header.body_len).min(n);
        if is_parcel {
            body = position;
            // SAFETY: a parcel lies in one piece, wherever the position stands before that.
            unsafe { body.run(FRAME as u64) };
            trace::read(body.node, body.at, FRAME);
            let mut message = Message::new();
            // SAFETY: it is a parcel, and passed over below.
            unsafe { message.unpack(body.at.add(2)) };
            beyond = beyond.wrapping_add(extra(message.len()));
        }
        // SAFETY: the caller's promise.
        unsafe { position.skip(total) };
        n -= total;
    }
    beyond
}
