//! Pausing of reading, and detection of the end of a peer while reading is paused.
//!
//! At the receive high-water mark reading stops, and the end of the stream lies behind the unread
//! bytes. For most sockets that is right, because they will read on. A REQ reads no bytes until its
//! next exchange, which may never come. So the reactor notifies the I/O thread when a peer of a REQ
//! has ended. The bytes that such a peer left in the kernel are finite, and are read to their end.

use super::Connection;
use crate::conn::intake::{Intake, PeerRequests, ReadOutcome};
use tautline_io::reactor::Interest;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::lock;

impl Connection {
    /// True if reading has stopped at the receive high-water mark.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.is_raised()
    }

    /// At the receive high-water mark: notes the pause, so that the owner resumes reading when it
    /// has caught up. If the owner caught up before it could see the note, this call continues to
    /// read.
    pub(super) fn pause_if_full(
        &self,
        intake: &mut Intake,
        mut took: ReadOutcome,
        asked: &mut PeerRequests,
    ) -> ReadOutcome {
        let mut any = false;
        while let ReadOutcome::Full { published } = took {
            any |= published;
            // The owner gives credit, then looks at the flag (`Incoming::can_recv_now`).
            self.paused.raise();
            if intake.is_full() {
                return ReadOutcome::Full { published: any };
            }
            self.paused.lower();
            took = intake.read(asked);
        }
        match took {
            ReadOutcome::Nothing | ReadOutcome::Bytes { .. } if any => ReadOutcome::Bytes { published: true },
            other => {
                if any {
                    self.announce();
                }
                other
            }
        }
    }

    /// Returns the events that the reactor must report for the open stream while no write waits.
    pub(crate) fn idle_interest(&self) -> Interest {
        // Needed only while reading is paused, because otherwise reading finds the end. Report the
        // end only once, to avoid repeated events.
        let unread = self.kind.takes_replies && self.is_paused() && !self.ended.load(Relaxed);
        if unread { Interest::END } else { Interest::NONE }
    }

    /// I/O thread: notes that the peer sends no further bytes. From now on the high-water mark does
    /// not apply.
    pub(crate) fn read_to_end(&self) {
        self.ended.store(true, Relaxed);
        lock(&self.intake).set_peer_finished();
    }
}
