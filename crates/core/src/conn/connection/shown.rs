//! What a connection shows of itself to a look from outside (`watch`), beside the counts of its
//! queues.

use super::{Connection, THROUGH_MEMORY};
use crate::queue::Progress;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock, try_lock};
use tautline_io::clock;

/// What is kept for that.
#[derive(Default)]
pub(super) struct Shown {
    /// How far it has read the log that it follows.
    followed: Mutex<Option<Arc<Progress>>>,
    /// When the PING was sent that waits for its PONG, in clock ticks; 0: none does.
    // Relaxed: number, for a look.
    pinged: AtomicU64,
    /// How many nanoseconds the last PONG took; 0: there was none.
    // Relaxed: number, for a look.
    round_trip_ns: AtomicU64,
}

/// Bytes of a connection that wait to be written; 0 while a thread writes them.
pub(crate) fn unsent(connection: &Connection) -> u64 {
    try_lock(&connection.pump).map_or(0, |mut pump| pump.unsent())
}

impl Connection {
    /// Owner: the log that the peer follows from now on. Its counts add to those of the queue.
    pub(crate) fn set_followed(&self, progress: Option<Arc<Progress>>) {
        *lock(&self.shown.followed) = progress;
    }

    /// The log that the peer follows, if it follows one.
    pub(crate) fn followed(&self) -> Option<Arc<Progress>> {
        lock(&self.shown.followed).clone()
    }

    /// Driver: a PING is sent.
    pub(crate) fn note_ping(&self) {
        // The PONG of an earlier one comes first.
        if self.shown.pinged.load(Relaxed) == 0 {
            self.shown.pinged.store(clock::ticks().max(1), Relaxed);
        }
    }

    /// A PONG has come.
    #[cold]
    pub(super) fn note_pong(&self) {
        let sent = self.shown.pinged.swap(0, Relaxed);
        if sent != 0 {
            let took = clock::ticks_to_nanos(clock::ticks().saturating_sub(sent));
            self.shown.round_trip_ns.store(took.max(1), Relaxed);
        }
    }

    /// How many nanoseconds the last heartbeat took there and back; 0 if there was none.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.shown.round_trip_ns.load(Relaxed)
    }

    /// Whether bytes go through shared memory, as far as was seen.
    pub(crate) fn shares_memory(&self) -> bool {
        match self.through_from.load(Relaxed) {
            THROUGH_MEMORY => true,
            // No Unix domain socket.
            u32::MAX => false,
            _ => try_lock(&self.intake).is_ok_and(|intake| intake.reads_from_memory()),
        }
    }
}
