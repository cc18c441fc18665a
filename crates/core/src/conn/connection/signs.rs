//! A peer's signs of life, for heartbeats.

use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use tautline_io::clock;

/// What the reader of a connection notes of each arrival.
#[derive(Default)]
pub(crate) struct Signs {
    /// Grows whenever something arrives.
    arrivals: AtomicU32, // Relaxed: own, the reader's; a number to heartbeats.
    /// Time to live that the peer's last PING granted, in deciseconds; 0 is for ever.
    // Relaxed: behind the task that tells the I/O thread (`IoSide::granted_ttl`); a later value
    // counts from the next look on.
    granted_ttl_ds: AtomicU32,
    /// Time of the last arrival in clock ticks. Only kept while a time to live is granted.
    heard_at: AtomicU64, // Relaxed: own, the reader's; a number to heartbeats.
}

impl Signs {
    /// Something has come. One thread at a time reads and counts, but for an owner that parts with
    /// the peer: then the session is over.
    pub(super) fn arrived(&self) {
        self.arrivals.store(self.arrivals.load(Relaxed).wrapping_add(1), Relaxed);
        if self.granted_ttl_ds.load(Relaxed) != 0 {
            self.heard_at.store(clock::ticks(), Relaxed);
        }
    }

    /// A PING grants a time to live. True for the first one of a session.
    pub(super) fn grant(&self, ttl_ds: u16) -> bool {
        ttl_ds != 0 && self.granted_ttl_ds.swap(ttl_ds.into(), Relaxed) == 0
    }

    /// The session is over: no time to live is granted.
    pub(super) fn end_session(&self) {
        self.granted_ttl_ds.store(0, Relaxed);
    }

    /// A number that changes with each arrival.
    pub(crate) fn arrivals(&self) -> u32 {
        self.arrivals.load(Relaxed)
    }

    /// The granted time to live.
    pub(crate) fn granted_ttl(&self) -> Duration {
        Duration::from_millis(u64::from(self.granted_ttl_ds.load(Relaxed)) * 100)
    }

    /// Time of the last arrival on the clock of the ticks, if a time to live was granted before it.
    pub(crate) fn heard_at(&self) -> Duration {
        Duration::from_nanos(clock::ticks_to_nanos(self.heard_at.load(Relaxed)))
    }
}
