//! Messages made and ended in memory that is no `Message` before or after: C's message objects.

use super::memory::{self, HeapBlock};
use super::{CLOSED_TAG, HEAP, INLINE, INLINE_MAX, Message, Outside, Owner, metadata};
use std::mem::MaybeUninit;

impl Message {
    /// Makes an empty message in memory that holds none. Unlike a move it does not touch the room for the body.
    ///
    /// # Safety
    /// `place` is aligned and valid for writes.
    #[inline]
    pub unsafe fn write_empty(place: *mut Message) {
        // SAFETY: the caller's promise. Each field but the body is written, and of an inline body of length 0 nothing is read.
        unsafe {
            (&raw mut (*place).tag).write(INLINE);
            (&raw mut (*place).more).write(false);
            (&raw mut (*place).shared).write(false);
            (&raw mut (*place).inline_len).write(0);
            (&raw mut (*place).routing_id).write(0);
            (&raw mut (*place).metadata).write(None);
            (&raw mut (*place).group).write(None);
        }
    }

    /// Makes a message of `len` bytes of unspecified content in memory that holds none, as [`Message::with_size`]; false, and nothing is
    /// made, if memory is exhausted.
    ///
    /// # Safety
    /// As for [`Message::write_empty`].
    #[inline]
    pub unsafe fn write_sized(place: *mut Message, len: usize) -> bool {
        let block = if len <= INLINE_MAX {
            None
        } else {
            let Some(block) = HeapBlock::allocate(len) else { return false };
            Some(block)
        };
        // SAFETY: the caller's promise.
        unsafe { Message::write_empty(place) };
        // SAFETY: now there is a message, whose body needs no initialisation.
        let message = unsafe { &mut *place };
        match block {
            None => {
                message.inline_len = len as u8;
                message.body.inline = [MaybeUninit::new(0); INLINE_MAX];
            }
            Some(block) => {
                message.body.outside =
                    Outside { data: HeapBlock::data(block), len, owner: Owner { heap: block } };
                message.tag = HEAP;
            }
        }
        true
    }

    /// Ends a message in place: what it holds is released, and its memory is no message any more.
    ///
    /// # Safety
    /// `place` holds a message that nobody else uses.
    #[inline]
    pub unsafe fn end(place: *mut Message) {
        // SAFETY: the caller's promise.
        let message = unsafe { &mut *place };
        if message.tag != INLINE {
            memory::release(message);
        }
        // Not the tag of a message: nobody drops it again.
        message.tag = CLOSED_TAG;
        if let Some(metadata) = message.metadata.take() {
            metadata::give_up(metadata);
        }
        if message.group.is_some() {
            message.group = None;
        }
    }
}
