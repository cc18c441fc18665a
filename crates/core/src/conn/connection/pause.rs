//! How reading pauses, and how a peer is seen to go from which nothing is read.
//!
//! At the receive high-water mark reading stops, and the end of the stream lies behind what is not
//! read. For most sockets that is as it should be: they will read on. A REQ reads nothing until its
//! next exchange, which may never come, so the reactor tells the I/O thread that a peer of it has
//! ended. What such a peer has left in the kernel is finite, and is read to its end.

use super::Connection;
use crate::conn::intake::{Asked, Intake, Took};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use crate::sync::atomic::fence;
use crate::sync::{Arc, lock};
use std::ops::ControlFlow;
use tautline_io::reactor::Interest;

impl Connection {
    /// Whether reading has stopped at the receive high-water mark.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Relaxed)
    }

    /// At the receive high-water mark: notes the pause, so that the owner resumes when it has
    /// caught up. An owner that has done so before it could see the note is not relied on.
    pub(super) fn pause_if_full(&self, intake: &mut Intake, mut took: Took, asked: &mut Asked) -> Took {
        let mut any = false;
        while let Took::Full { published } = took {
            any |= published;
            self.paused.store(true, Relaxed);
            // Store the note, then load the credit; the owner gives credit, then looks for the note
            // (`Incoming::found_empty`).
            fence(SeqCst);
            if intake.is_full() {
                return Took::Full { published: any };
            }
            self.paused.store(false, Relaxed);
            took = intake.read(asked);
        }
        match took {
            Took::Nothing | Took::Bytes { .. } if any => Took::Bytes { published: true },
            other => {
                if any {
                    self.announce();
                }
                other
            }
        }
    }

    /// Owner: there is room again; reading goes on.
    pub(crate) fn resume(self: &Arc<Self>) {
        self.io.resume(self);
    }

    /// Owner: reads once what the peer has sent by now. Returns whether anything came; `Break`: the
    /// session is over.
    pub(crate) fn read_now(self: &Arc<Self>) -> ControlFlow<(), bool> {
        self.io.read_now(self)
    }

    /// Read set: takes the pause off. True if reading may go on (the caller tells the read set).
    pub(crate) fn unpause(&self) -> bool {
        self.paused.swap(false, Relaxed)
    }

    /// What the reactor is to tell of the open stream while no write waits.
    pub(crate) fn idle_interest(&self) -> Interest {
        // Else the end is found by reading. And once, or it would be told again and again.
        let unread = self.kind.takes_replies && self.is_paused() && !self.ended.load(Relaxed);
        if unread { Interest::END } else { Interest::NONE }
    }

    /// Whether the session is over. Asked where the owner knows of the connection and the read set
    /// does not.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.load(Acquire) || !self.is_linked()
    }

    /// I/O thread: the peer sends nothing more; the mark does not count from now on.
    pub(crate) fn take_rest(&self) {
        self.ended.store(true, Relaxed);
        lock(&self.intake).take_rest();
    }
}
