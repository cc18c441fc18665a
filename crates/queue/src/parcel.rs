//! Parcels: large bodies between two sockets of one process. Instead of a frame's body, the chain
//! holds the message that owns the body.
//!
//! A parcel's frame is short and contiguous. So a body of any length costs little more than a body
//! of 64 bytes: it needs no extra node, and only as many cache lines as a short message. The byte
//! counts of a chain are those of its frames in memory. The additional size of the bodies on the
//! wire is counted separately by both ends (`extra`).
//!
//! Only chains between two sockets have parcels. The bit that marks a parcel is reserved in RFC 37,
//! and no frame from the network has it: the reader of the network refuses it, and the end of a
//! chain from the network does not look for it.

use super::segment::{Position, trace};
use super::writer::SHORT;
use crate::message::Message;
use crate::message::packed::PACKED;
use tautline_proto::frame;

/// Flag of a parcel's frame.
pub(super) const PARCEL: u8 = 0x80;
/// Length of the frame: flags, length, body.
pub(super) const FRAME: usize = 2 + BODY;
/// Length of the frame's body.
pub(super) const BODY: usize = PACKED;
const _: () = assert!(BODY < SHORT);

/// Returns the number of additional bytes that a body of this length would take on the wire,
/// compared with its parcel here. Wraps around, because a short body takes fewer bytes.
#[inline]
pub(super) fn extra(len: usize) -> u64 {
    let header = if len < 256 { 2 } else { frame::MAX_HEADER };
    ((header + len) as u64).wrapping_sub(FRAME as u64)
}

/// Writes the frame of a message. The message is then empty.
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

/// If the `left` bytes at `at` begin with another parcel, prefetches the data that its receiver
/// reads first.
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
/// parts of a message. Returns the additional bytes that their bodies would have taken on the wire.
///
/// # Safety
/// At least `n` bytes behind `position` are visible to the caller and not released. Their frames
/// are not accessed afterwards.
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
            // SAFETY: a parcel is contiguous, wherever the position stands before it.
            unsafe { body.next_run(FRAME as u64) };
            trace::read(body.node, body.at, FRAME);
            let mut message = Message::new();
            // SAFETY: it is a parcel, and skipped below.
            unsafe { message.unpack(body.at.add(2)) };
            beyond = beyond.wrapping_add(extra(message.len()));
        }
        // SAFETY: the caller's promise.
        unsafe { position.skip(total) };
        n -= total;
    }
    beyond
}
