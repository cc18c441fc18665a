//! `Signal`: a wake descriptor that is made when its owner first needs it, and spares the system
//! calls of one that is readable already, or that is not.
//!
//! ```text
//! waker:  [what it has to tell]  raised = true
//!         had it been false, and the descriptor made: write it
//! owner:  descriptor()  [make it; made = true; had it been raised: write it]
//! owner:  quieten()  [raised? read the descriptor, if made; got something, or not made:
//!         raised = false]   look at what there is to tell
//! ```
//!
//! `raised` and `made` are one word, so of a waker and an owner that makes the descriptor exactly
//! one sees the other. Thus at most one write is under way or waits to be read at any time: the
//! next one comes after `raised` was cleared, and once the descriptor is made that takes a read
//! that got it. So a waker that finds `raised` set may rely on the one that set it: either the
//! owner still has that write to read, or it clears the flag behind it and then sees what this
//! waker has to tell.
//!
//! The owner gives the descriptor back when it goes (`release`), however long others hold on to the
//! signal.

use std::io;

use crate::sync::atomic::AtomicU8;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::sync::{Arc, RwLock};
use std::sync::PoisonError;

/// What is readable from `write` until `read`: an eventfd.
pub(crate) trait Descriptor: Sized {
    /// A new one, which cannot be read.
    fn make() -> io::Result<Self>;
    /// Makes it readable.
    fn write(&self);
    /// Makes it unreadable; whether it was readable.
    fn read(&self) -> bool;
}

/// A waker has written the descriptor, or would have if there were one.
const RAISED: u8 = 1;
/// The descriptor is there. Changed by the owner only.
const MADE: u8 = 2;

/// A wake descriptor, and whether it was written.
pub(crate) struct Signal<D> {
    /// RAISED, MADE.
    state: AtomicU8,
    /// Changed by the owner only. A waker that writes holds the lock as a reader, and so does an
    /// owner that reads: neither waits for the other.
    descriptor: RwLock<Option<Arc<D>>>,
}

impl<D: Descriptor> Signal<D> {
    /// Without a descriptor, and not raised.
    pub(crate) fn new() -> Self {
        Signal { state: AtomicU8::new(0), descriptor: RwLock::new(None) }
    }

    /// Owner: the descriptor to wait on, which is made if it is not there. To be written and read
    /// by way of the signal only. A thread that waits on it without being the owner keeps it open
    /// by this.
    pub(crate) fn descriptor(&self) -> io::Result<Arc<D>> {
        if let Some(made) = self.with(Arc::clone) {
            return Ok(made);
        }
        let made = Arc::new(D::make()?);
        self.put(Some(made.clone()));
        // AcqRel pairs with `raise`: a waker that raised it before has written nothing, one that
        // does so from now on sees the descriptor.
        if self.state.fetch_or(MADE, AcqRel) & RAISED != 0 {
            made.write();
        }
        Ok(made)
    }

    /// Owner: it will never wait again, and the descriptor is closed unless another thread keeps it
    /// open.
    pub(crate) fn release(&self) {
        self.state.fetch_and(!MADE, AcqRel);
        // Waits for a waker that is just writing.
        let made = self.put(None);
        drop(made);
    }

    /// Any thread: the descriptor is readable, now or in a moment, or when it is made.
    pub(crate) fn raise(&self) {
        // Release: what the caller has to tell is seen by the owner that clears the flag behind
        // this.
        if self.state.fetch_or(RAISED, AcqRel) == MADE {
            // The lock keeps it open meanwhile.
            self.with(|made| made.write());
        }
    }

    /// Owner: runs `look`, which may tell the owner something itself; that does not write the
    /// descriptor, nor does what others tell meanwhile. Makes it unreadable, too: afterwards the
    /// owner looks at what there is to tell.
    pub(crate) fn quietly(&self, look: impl FnOnce()) {
        // The descriptor is not written while the flag is set. The waker that has set it before has
        // written, or is about to.
        let held = self.state.fetch_or(RAISED, AcqRel) & RAISED == 0;
        look();
        if held {
            self.state.fetch_and(!RAISED, AcqRel);
        } else {
            self.quieten();
        }
    }

    /// Owner: makes the descriptor unreadable. Afterwards it looks at what there is to tell:
    /// nothing that was told before this wakes again.
    #[inline]
    pub(crate) fn quieten(&self) {
        // A waker that raises it after this load writes the descriptor.
        let state = self.state.load(Acquire);
        if state & RAISED != 0 {
            self.take(state);
        }
    }

    #[cold]
    fn take(&self, state: u8) {
        if state & MADE == 0 || self.with(|made| made.read()) == Some(true) {
            // A change of the flag in place: it must come behind that of a waker that has found the
            // flag set, to see what that one has to tell.
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
