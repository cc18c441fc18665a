//! `Signal`: a wake descriptor that is made when its owner first needs it. A signal avoids the
//! system call if the descriptor is already readable, or already unreadable.
//!
//! ```text
//! waker:  [its news]  raised = true
//!         if it was false, and the descriptor is made: write it
//! owner:  descriptor()  [make it; made = true; if it was raised: write it]
//! owner:  quieten()  [raised? read the descriptor, if made; got something, or not made:
//!         raised = false]   look at the news
//! ```
//!
//! `raised` and `made` are one word. So of a waker and an owner that makes the descriptor, exactly
//! one sees the other. At any time at most one write is under way or waits to be read: the next
//! write comes after `raised` was cleared, and once the descriptor is made, clearing needs a read
//! that got the write.
//!
//! So a waker that finds `raised` set may rely on the waker that set it. Either the owner still has
//! that write to read, or it clears the flag behind it and then sees the news of both wakers.
//!
//! The owner releases the descriptor when it ends (`release`), even if other threads keep the
//! signal longer.

use std::io;

use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::sync::{Arc, RwLock};
use std::sync::PoisonError;
#[cfg(not(loom))]
use tautline_io::wake::WakeFd;

/// A descriptor that is readable from `write` until `read`: an eventfd.
pub trait Descriptor: Sized {
    /// Creates an unreadable descriptor.
    fn make() -> io::Result<Self>;
    /// Makes the descriptor readable.
    fn write(&self);
    /// Makes the descriptor unreadable. Returns true if it was readable.
    fn read(&self) -> bool;
}

#[cfg(not(loom))]
impl Descriptor for WakeFd {
    fn make() -> io::Result<Self> {
        WakeFd::new()
    }

    fn write(&self) {
        self.wake();
    }

    fn read(&self) -> bool {
        self.drain()
    }
}

/// A waker has written the descriptor, or would have if it existed.
const RAISED: u8 = 1;
/// The descriptor exists. Changed only by the owner.
const MADE: u8 = 2;

/// A wake descriptor and the flags about its state.
pub struct Signal<D> {
    /// RAISED, MADE.
    state: AtomicU8,
    /// Changed only by the owner. A waker that writes holds the lock as a reader, and an owner that
    /// reads does the same. So they do not wait for each other.
    descriptor: RwLock<Option<Arc<D>>>,
}

impl<D: Descriptor> Signal<D> {
    /// Returns a signal without a descriptor, not raised.
    pub fn new() -> Self {
        Signal { state: AtomicU8::new(0), descriptor: RwLock::new(None) }
    }

    /// Owner: returns the descriptor to wait on, and creates it if needed. Only the signal may
    /// write and read it. A waiting thread that is not the owner keeps the descriptor open with the
    /// returned `Arc`.
    pub fn descriptor(&self) -> io::Result<Arc<D>> {
        if let Some(made) = self.with(Arc::clone) {
            return Ok(made);
        }
        let made = Arc::new(D::make()?);
        self.put(Some(made.clone()));
        // AcqRel pairs with `raise`: a waker that raised the flag before has not written the
        // descriptor, and a waker that raises it from now on sees the descriptor.
        if self.state.fetch_or(MADE, AcqRel) & RAISED != 0 {
            made.write();
        }
        Ok(made)
    }

    /// Owner: closes the descriptor, because the owner will never wait again. The descriptor stays
    /// open while another thread keeps it.
    pub fn release(&self) {
        self.state.fetch_and(!MADE, AcqRel);
        // Waits for a waker that is just writing.
        let made = self.put(None);
        drop(made);
    }

    /// Makes the descriptor readable, now or soon, or when it is made. Any thread may call it.
    pub fn raise(&self) {
        // Release: the owner that clears the flag behind this sees the caller's news.
        if self.state.fetch_or(RAISED, AcqRel) == MADE {
            // The lock keeps the descriptor open during the write.
            self.with(|made| made.write());
        }
    }

    /// Owner: runs `look` and makes the descriptor unreadable. `look` may notify the owner itself.
    /// Notifications during `look`, from any thread, do not write the descriptor. Afterwards the
    /// owner looks at its news.
    pub fn coalesce_during(&self, look: impl FnOnce()) {
        // The descriptor is not written while the flag is set. A waker that set it before has
        // written, or is about to.
        let held = self.state.fetch_or(RAISED, AcqRel) & RAISED == 0;
        look();
        if held {
            self.state.fetch_and(!RAISED, AcqRel);
        } else {
            self.clear();
        }
    }

    /// Owner: makes the descriptor unreadable. Afterwards the owner looks at its news. News from
    /// before this call do not wake it again.
    #[inline]
    pub fn clear(&self) {
        // A waker that raises the flag after this load writes the descriptor.
        let state = self.state.load(Acquire);
        if state & RAISED != 0 {
            self.take(state);
        }
    }

    #[cold]
    fn take(&self, state: u8) {
        if state & MADE == 0 || self.with(|made| made.read()) == Some(true) {
            // Change the flag in place: the change must come behind that of a waker that has found
            // the flag set, so that the owner sees that waker's news.
            self.state.fetch_and(!RAISED, AcqRel);
        }
    }

    fn with<T>(&self, f: impl FnOnce(&Arc<D>) -> T) -> Option<T> {
        self.descriptor.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(f)
    }

    fn put(&self, new: Option<Arc<D>>) -> Option<Arc<D>> {
        std::mem::replace(&mut *self.descriptor.write().unwrap_or_else(PoisonError::into_inner), new)
    }
}
