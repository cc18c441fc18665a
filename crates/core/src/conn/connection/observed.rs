//! Observed state of a connection for `watch`, in addition to the counters of its queues.

use super::{Connection, THROUGH_MEMORY};
use tautline_io::clock;
use tautline_queue::Progress;
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock, try_lock};

/// State kept for `watch`.
#[derive(Default)]
pub(super) struct ObservedState {
    /// Progress of the connection in the log that it follows.
    followed: Mutex<Option<Arc<Progress>>>,
    /// Time in clock ticks at which the PING that waits for its PONG was sent. 0 if no PING waits.
    // Relaxed: number, for a look.
    pinged: AtomicU64,
    /// Round-trip time of the last PONG in nanoseconds. 0 before the first PONG.
    // Relaxed: number, for a look.
    round_trip_ns: AtomicU64,
}

/// Returns the bytes of a connection that wait to be written. 0 while a thread writes them.
pub(crate) fn unsent_bytes(connection: &Connection) -> u64 {
    try_lock(&connection.pump).map_or(0, |mut pump| pump.unsent_bytes())
}

impl Connection {
    /// Owner: sets the log that the peer follows from now on. The log's counters add to those of
    /// the queue.
    pub(crate) fn set_followed(&self, progress: Option<Arc<Progress>>) {
        *lock(&self.observed.followed) = progress;
    }

    /// Returns the progress in the log that the peer follows, if it follows one.
    pub(crate) fn followed(&self) -> Option<Arc<Progress>> {
        lock(&self.observed.followed).clone()
    }

    /// Driver: notes that a PING is sent.
    pub(crate) fn note_ping(&self) {
        // The PONG of an earlier PING comes first.
        if self.observed.pinged.load(Relaxed) == 0 {
            self.observed.pinged.store(clock::ticks().max(1), Relaxed);
        }
    }

    /// Notes that a PONG has come.
    #[cold]
    pub(super) fn note_pong(&self) {
        let sent = self.observed.pinged.swap(0, Relaxed);
        if sent != 0 {
            let took = clock::ticks_to_nanos(clock::ticks().saturating_sub(sent));
            self.observed.round_trip_ns.store(took.max(1), Relaxed);
        }
    }

    /// Returns the round-trip time of the last heartbeat in nanoseconds. 0 if there was no
    /// heartbeat.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.observed.round_trip_ns.load(Relaxed)
    }

    /// True if bytes go through shared memory, as far as the connection has seen.
    pub(crate) fn shares_memory(&self) -> bool {
        match self.through_from.load(Relaxed) {
            THROUGH_MEMORY => true,
            // Not a Unix domain socket.
            u32::MAX => false,
            _ => try_lock(&self.intake).is_ok_and(|intake| intake.reads_from_memory()),
        }
    }
}
