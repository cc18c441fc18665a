//! Messages that are created and ended in memory that is not a `Message` before or after: C's
//! message objects.

use super::memory::{self, HeapBlock};
use super::{BodyOwner, CLOSED_TAG, HEAP, INLINE, INLINE_MAX, IndirectBody, Message, metadata};
use std::mem::MaybeUninit;

impl Message {
    /// Creates an empty message in uninitialised memory. Unlike a move, it does not write the space
    /// for the body.
    ///
    /// # Safety
    /// `place` is aligned and valid for writes.
    #[inline]
    pub unsafe fn write_empty(place: *mut Message) {
        // SAFETY: the caller's promise. Every field but the body is written, and an inline body of
        // length 0 is never read.
        unsafe { Message::write_bare(place, INLINE) };
    }

    /// Writes this tag, and defaults in all other fields but the body.
    ///
    /// # Safety
    /// `place` is aligned and valid for writes. A body that the tag asks for is written afterwards.
    #[inline(always)]
    unsafe fn write_bare(place: *mut Message, tag: u8) {
        // SAFETY: the caller's promise.
        unsafe {
            Message::write_head(place, tag);
            (&raw mut (*place).metadata).write(None);
            (&raw mut (*place).group).write(None);
        }
    }

    /// Writes this tag and zero in the four fields behind it: the eight bytes before the metadata,
    /// in one store.
    ///
    /// # Safety
    /// `place` is aligned and valid for writes. A body that the tag asks for is written afterwards.
    #[inline(always)]
    pub(super) unsafe fn write_head(place: *mut Message, tag: u8) {
        // SAFETY: the caller's promise; a message begins with these bytes. `more` and `shared` may
        // be zero.
        unsafe { place.cast::<u64>().write_unaligned(u64::from_ne_bytes([tag, 0, 0, 0, 0, 0, 0, 0])) };
    }

    /// Creates a message of `len` uninitialised bytes in uninitialised memory. Returns false,
    /// without a message, if memory is exhausted.
    ///
    /// # Safety
    /// `place` is aligned and valid for writes. Every byte of the body is written, through
    /// [`Message::data_ptr`], before any code reads it.
    #[inline]
    pub unsafe fn write_sized(place: *mut Message, len: usize) -> bool {
        if len <= INLINE_MAX {
            // SAFETY: the caller's promise.
            unsafe { Message::write_empty(place) };
            // SAFETY: now there is a message.
            let message = unsafe { &mut *place };
            message.inline_len = len as u8;
            message.body.inline = [MaybeUninit::new(0); INLINE_MAX];
            return true;
        }
        let Some(block) = HeapBlock::allocate(len) else { return false };
        let block = block.as_ptr();
        let outside = IndirectBody { data: HeapBlock::data(block), len, owner: BodyOwner { heap: block } };
        // SAFETY: the caller's promise, and the body that the tag asks for.
        unsafe {
            Message::write_bare(place, HEAP);
            (&raw mut (*place).body.outside).write(outside);
        }
        true
    }

    /// Ends a message in place: releases its contents. The memory is not a message afterwards.
    ///
    /// # Safety
    /// `place` holds a message that no other code uses.
    #[inline]
    pub unsafe fn drop_in_place(place: *mut Message) {
        // SAFETY: the caller's promise.
        let message = unsafe { &mut *place };
        if message.tag != INLINE {
            memory::release(message);
        }
        // An invalid tag, so that the message is not dropped again.
        message.tag = CLOSED_TAG;
        if let Some(metadata) = message.metadata.take() {
            metadata::release(metadata);
        }
        if message.group.is_some() {
            message.group = None;
        }
    }
}
