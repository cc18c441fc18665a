//! A message's body by itself, as bytes in the midst of others: how it travels between two sockets
//! of one process.
//!
//! ```text
//! 0  tag, 0, whether it was shared, 0 ...
//! 8  where the body lies, how long it is, whose it is
//! ```

use super::{Message, Outside, TAG_OFFSET};
use crate::sync::prefetch;
use std::mem::MaybeUninit;

/// A word of a message, whatever it is.
type Word = MaybeUninit<*mut u8>;
const WORD: usize = size_of::<Word>();
const HEAD: usize = size_of::<u64>();

/// How many bytes that are.
pub(crate) const PACKED: usize = HEAD + size_of::<Outside>();

/// The view of the body of what was packed.
///
/// # Safety
/// `from` is where `Message::pack` has written.
#[inline(always)]
unsafe fn outside(from: *const u8) -> Outside {
    // SAFETY: the caller's promise; nothing is said about the alignment.
    unsafe { from.add(HEAD).cast::<Outside>().read_unaligned() }
}

impl Message {
    /// Moves the body to `to` and leaves an empty message; the properties of the message are
    /// dropped.
    ///
    /// # Safety
    /// `PACKED` bytes at `to` are the caller's to write, and the message is movable.
    #[inline(always)]
    pub(crate) unsafe fn pack(&mut self, to: *mut u8) {
        debug_assert!(self.is_movable());
        self.clear_properties();
        let head = u64::from_ne_bytes([self.tag, 0, self.shared.into(), 0, 0, 0, 0, 0]);
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u64>().write_unaligned(head) };
        let body = (&raw const self.body).cast::<Word>();
        for at in 0..size_of::<Outside>() / WORD {
            // Word by word, as it was stored a moment ago: a wider load would wait until those
            // stores have left the store buffer.
            // SAFETY: within the view that is live in a movable message, which is aligned.
            let word = unsafe { body.add(at).read_volatile() };
            // SAFETY: the caller's promise.
            unsafe { to.add(HEAD + at * WORD).cast::<Word>().write_unaligned(word) };
        }
        // SAFETY: there is a message, and its body belongs to what was written from now on.
        unsafe { Message::write_head(self, super::INLINE) };
    }

    /// Replaces the body by one that was packed. Everything else goes back to the defaults, but the
    /// metadata stay for [`Message::describe`].
    ///
    /// # Safety
    /// `from` is where `pack` has written, and this is done once.
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

    /// The body of what was packed.
    ///
    /// # Safety
    /// `from` is where `pack` has written, and it is not unpacked during `'a`.
    pub(crate) unsafe fn packed_body<'a>(from: *const u8) -> &'a [u8] {
        // SAFETY: the caller's promise.
        match unsafe { outside(from) } {
            Outside { len: 0, .. } => &[],
            // SAFETY: as in `as_slice`: what was packed holds the reference.
            Outside { data, len, .. } => unsafe { std::slice::from_raw_parts(data, len) },
        }
    }

    /// Brings the beginning and the end of the body of what was packed into the cache, with what
    /// releasing it looks at.
    ///
    /// # Safety
    /// As for `packed_body`.
    #[inline(always)]
    pub(crate) unsafe fn prefetch_packed(from: *const u8) {
        // SAFETY: the caller's promise.
        let Outside { data, len, .. } = unsafe { outside(from) };
        Message::prefetch_body(data);
        prefetch(data.wrapping_add(len).wrapping_sub(1));
    }
}

const _: () = assert!(TAG_OFFSET == 0 && size_of::<Outside>().is_multiple_of(WORD));

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
