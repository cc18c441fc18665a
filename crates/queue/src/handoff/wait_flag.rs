//! The flag of a thread that waits until another thread changes something.
//!
//! ```text
//! waiter:   raise()  [store; fence]           look at the state
//! changer:  change the state                  is_raised_now()  [fence; load]
//! ```
//!
//! At least one of the two sees the other's store: the waiter finds the change, or the changer
//! finds the flag.

use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, fence};

/// A flag that one thread raises before it looks again, and that another thread takes.
#[derive(Debug)]
pub struct WaitFlag(
    // Relaxed: fence, by `raise` and `is_raised_now`; the swap decides.
    AtomicBool,
);

impl WaitFlag {
    /// Returns a flag that is not raised.
    pub fn new() -> Self {
        WaitFlag(AtomicBool::new(false))
    }

    /// Raises the flag. The caller looks at the state once more after this.
    #[inline]
    pub fn raise(&self) {
        self.0.store(true, Release);
        fence(SeqCst);
    }

    /// Lowers the flag.
    #[inline]
    pub fn lower(&self) {
        self.0.store(false, Release);
    }

    /// Lowers the flag. Returns true if it was raised: of several callers, one gets this answer.
    #[inline]
    pub fn take(&self) -> bool {
        // Load first: a swap takes the cache line from the other thread.
        self.0.load(Relaxed) && self.0.swap(false, AcqRel)
    }

    /// True if the flag is raised, for a thread that has changed the state.
    #[inline]
    pub fn is_raised_now(&self) -> bool {
        fence(SeqCst);
        self.is_raised()
    }

    /// True if the flag is raised. An earlier change of the state may not be visible to the waiter.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Acquire)
    }
}

impl Default for WaitFlag {
    fn default() -> Self {
        WaitFlag::new()
    }
}

#[cfg(all(test, loom))]
mod tests;
