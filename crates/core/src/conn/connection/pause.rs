//! How reading pauses, and how a peer is seen to go from which nothing is read.
//!
//! At the receive high-water mark reading stops, and the end of the stream lies behind what is not read. For most sockets that is as it
//! should be: they will read on. A REQ reads nothing until its next exchange, which may never come, so the reactor tells the I/O thread
//! that a peer of it has ended. What such a peer has left in the kernel is finite, and is read to its end.

use super::Connection;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, lock};
use tautline_io::reactor::Interest;

impl Connection {
    /// Whether reading has stopped at the receive high-water mark.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// Owner: there is room again; reading goes on.
    pub(crate) fn resume(self: &Arc<Self>) {
        self.io.resume(self);
    }

    /// Read set: takes the pause off. True if reading may go on (the caller tells the read set).
    pub(crate) fn unpause(&self) -> bool {
        self.paused.swap(false, Relaxed)
    }

    /// What the reactor is to tell of the open stream while nobody waits to write to it.
    pub(crate) fn idle_interest(&self) -> Interest {
        // Once, or it would be told again and again.
        if self.kind.takes_replies && !self.ended.load(Relaxed) { Interest::END } else { Interest::NONE }
    }

    /// I/O thread: the peer sends nothing more; the mark does not count from now on.
    pub(crate) fn take_rest(&self) {
        self.ended.store(true, Relaxed);
        lock(&self.intake).take_rest();
    }
}
