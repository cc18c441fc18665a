//! `Signal`: spares the system calls of a wake descriptor that is readable already, or that is not.
//!
//! ```text
//! waker:  [what it has to tell]  raised = true; had it been false: write the descriptor
//! owner:  quieten()  [raised? read the descriptor; got something: raised = false]   look at what there is to tell
//! ```
//!
//! At most one write is under way or waits to be read at any time: the next one comes after `raised` was cleared, and that takes a read that
//! got it. So a waker that finds `raised` set may rely on the one who set it: either the owner still has that write to read, or it clears
//! the flag behind it and then sees what this waker has to tell.

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};

/// What is readable from `write` until `read`: an eventfd.
pub(crate) trait Descriptor {
    /// Makes it readable.
    fn write(&self);
    /// Makes it unreadable; whether it was readable.
    fn read(&self) -> bool;
}

/// A wake descriptor, and whether somebody has written it.
pub(crate) struct Signal<D> {
    descriptor: D,
    raised: AtomicBool,
}

impl<D: Descriptor> Signal<D> {
    /// Over a descriptor that nobody has written.
    pub(crate) fn new(descriptor: D) -> Self {
        Signal { descriptor, raised: AtomicBool::new(false) }
    }

    /// The descriptor to wait on. To be written and read by way of the signal only.
    pub(crate) fn descriptor(&self) -> &D {
        &self.descriptor
    }

    /// Any thread: the descriptor is readable, now or in a moment.
    pub(crate) fn raise(&self) {
        // Release: what the caller has to tell is seen by the owner that clears the flag behind this.
        if !self.raised.swap(true, AcqRel) {
            self.descriptor.write();
        }
    }

    /// Owner: runs `look`, which may tell the owner something itself; that does not write the descriptor, nor does what others tell
    /// meanwhile. Makes it unreadable, too: afterwards the owner looks at what there is to tell.
    pub(crate) fn quietly(&self, look: impl FnOnce()) {
        // Nobody writes while the flag is set. Whoever has set it before has written, or is about to.
        let held = !self.raised.swap(true, AcqRel);
        look();
        if held {
            self.raised.swap(false, AcqRel);
        } else {
            self.quieten();
        }
    }

    /// Owner: makes the descriptor unreadable. Afterwards it looks at what there is to tell: nothing that was told before this wakes again.
    #[inline]
    pub(crate) fn quieten(&self) {
        // Whoever raises it after this load writes the descriptor.
        if self.raised.load(Acquire) && self.descriptor.read() {
            // A swap: it must come behind that of a waker that has found the flag set, to see what that one has to tell.
            self.raised.swap(false, AcqRel);
        }
    }
}
