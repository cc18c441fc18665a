//! `LatestMessage`: a slot for one message, which keeps the newest message (ZMQ_CONFLATE).
//!
//! Each side may put a message in or take it out. Only messages of one part go through a slot, as
//! the man page says.

use crate::message::Message;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// The newest message, with its frame flags.
pub struct LatestMessage {
    newest: Mutex<Option<(u8, Message)>>,
    /// True if `newest` has a message. Written under the lock of `newest`.
    full: AtomicBool,
    /// Number of parts of multipart messages that were put in as messages of their own.
    // Relaxed: number, for tools.
    split_parts: AtomicU64,
}

impl LatestMessage {
    /// Returns an empty slot.
    pub fn new() -> Self {
        LatestMessage {
            newest: Mutex::new(None),
            full: AtomicBool::new(false),
            split_parts: AtomicU64::new(0),
        }
    }

    /// Puts a message in and replaces the current one.
    #[inline]
    pub fn put(&self, flags: u8, message: Message) {
        let mut newest = lock(&self.newest);
        let former = newest.replace((flags, message));
        // Release pairs with the Acquire in `is_full`.
        self.full.store(true, Ordering::Release);
        drop(newest);
        // The former message's free function runs outside of the lock.
        drop(former);
    }

    /// Takes the message out.
    #[inline]
    pub fn take(&self) -> Option<(u8, Message)> {
        if !self.is_full() {
            return None;
        }
        let mut newest = lock(&self.newest);
        self.full.store(false, Ordering::Release);
        newest.take()
    }

    /// Puts a part in. `is_split`: other parts of its message follow, and the slot treats them as
    /// messages of their own.
    #[inline]
    pub fn put_part(&self, flags: u8, part: Message, is_split: bool) {
        if is_split {
            self.split_parts.fetch_add(1, Ordering::Relaxed);
        }
        self.put(flags, part);
    }

    /// Returns the number of counted parts.
    pub fn split_parts(&self) -> u64 {
        self.split_parts.load(Ordering::Relaxed)
    }

    /// True if there is a message.
    #[inline]
    pub fn is_full(&self) -> bool {
        // Acquire pairs with the Release in `put`.
        self.full.load(Ordering::Acquire)
    }
}
