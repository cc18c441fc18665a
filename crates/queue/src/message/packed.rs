//! The body of a message as bytes among other bytes: its form between two sockets of one process.
//!
//! ```text
//! 0  tag, 0, 1 if it was shared, 0 ...
//! 8  address of the body, its length, its owner
//! ```

use super::{IndirectBody, Message, TAG_OFFSET};
use crate::sync::prefetch;
use std::mem::MaybeUninit;

/// A word of a message, of any content.
type Word = MaybeUninit<*mut u8>;
const WORD: usize = size_of::<Word>();
const HEAD: usize = size_of::<u64>();

/// Size of a packed body.
pub(crate) const PACKED: usize = HEAD + size_of::<IndirectBody>();

/// The view of a packed body.
///
/// # Safety
/// `from` is where `Message::pack` has written.
#[inline(always)]
unsafe fn outside(from: *const u8) -> IndirectBody {
    // SAFETY: the caller's promise; the read does not require alignment.
    unsafe { from.add(HEAD).cast::<IndirectBody>().read_unaligned() }
}

impl Message {
    /// Moves the body to `to` and leaves an empty message. The properties of the message are
    /// dropped.
    ///
    /// # Safety
    /// The caller may write `PACKED` bytes at `to`, and the message is movable.
    #[inline(always)]
    pub(crate) unsafe fn pack(&mut self, to: *mut u8) {
        debug_assert!(self.is_movable());
        self.clear_properties();
        let head = u64::from_ne_bytes([self.tag, 0, self.shared.into(), 0, 0, 0, 0, 0]);
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u64>().write_unaligned(head) };
        let body = (&raw const self.body).cast::<Word>();
        for at in 0..size_of::<IndirectBody>() / WORD {
            // Copy word by word, as the words were stored a moment ago: a wider load would wait
            // until those stores have left the store buffer.
            // SAFETY: within the live view of a movable message, which is aligned.
            let word = unsafe { body.add(at).read_volatile() };
            // SAFETY: the caller's promise.
            unsafe { to.add(HEAD + at * WORD).cast::<Word>().write_unaligned(word) };
        }
        // SAFETY: this is a valid message, and its body now belongs to the written bytes.
        unsafe { Message::write_head(self, super::INLINE) };
    }

    /// Replaces the body by a packed one. All other fields are reset, but the metadata stays for
    /// [`Message::replace_metadata`].
    ///
    /// # Safety
    /// `from` is where `pack` has written, and each packed body is unpacked once.
    #[inline(always)]
    pub(crate) unsafe fn unpack(&mut self, from: *const u8) {
        self.clear_body();
        // SAFETY: the caller's promise.
        let [tag, _, shared, ..] = unsafe { from.cast::<[u8; HEAD]>().read() };
        self.tag = tag;
        self.shared = shared != 0;
        // SAFETY: the caller's promise.
        self.body.outside = unsafe { outside(from) };
    }

    /// The bytes of a packed body.
    ///
    /// # Safety
    /// `from` is where `pack` has written, and it is not unpacked during `'a`.
    pub(crate) unsafe fn packed_body<'a>(from: *const u8) -> &'a [u8] {
        // SAFETY: the caller's promise.
        match unsafe { outside(from) } {
            IndirectBody { len: 0, .. } => &[],
            // SAFETY: as in `as_slice`: the packed body holds the reference.
            IndirectBody { data, len, .. } => unsafe { std::slice::from_raw_parts(data, len) },
        }
    }

    /// Prefetches the start and the end of a packed body, and the header that its release reads.
    ///
    /// # Safety
    /// `from` is where `pack` has written, and it is not unpacked during the call.
    #[inline(always)]
    pub(crate) unsafe fn prefetch_packed(from: *const u8) {
        // SAFETY: the caller's promise.
        let IndirectBody { data, len, .. } = unsafe { outside(from) };
        Message::prefetch_body(data);
        prefetch(data.wrapping_add(len).wrapping_sub(1));
    }
}

const _: () = assert!(TAG_OFFSET == 0 && size_of::<IndirectBody>().is_multiple_of(WORD));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_out_as_it_went_in_wherever_it_lay_meanwhile() {
        for at in 0..9 {
            let mut place = [0_u8; PACKED + 9];
            let place = place[at..].as_mut_ptr();
            let mut message = Message::from_slice(&[7; 100]);
            let data = message.data_ptr();
            let other = message.share();
            message.set_routing_id(5);
            message.set_more(true);
            message.set_group(b"group");
            // SAFETY: there is room, and the message is unpacked once.
            unsafe {
                message.pack(place);
                assert!(message.is_empty() && message.group().is_empty() && !message.is_shared());
                assert_eq!(Message::packed_body(place), [7; 100]);
                let mut out = Message::from_slice(&[1; 50]);
                out.unpack(place);
                assert_eq!((out.data_ptr(), out.len()), (data, 100));
                assert_eq!((out.more(), out.is_shared(), out.routing_id()), (false, true, 0));
            }
            assert_eq!(other.as_slice(), [7; 100]);
        }
    }
}
