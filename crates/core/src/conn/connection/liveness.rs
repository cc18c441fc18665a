//! A peer's signs of life, for heartbeats.

use std::time::Duration;
use tautline_io::clock;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::atomic::{AtomicU32, AtomicU64};

/// Values that the reader of a connection notes at each arrival.
#[derive(Default)]
pub(crate) struct Liveness {
    /// Number of arrivals so far. Wraps around.
    arrivals: AtomicU32, // Relaxed: own, the reader's; a number to heartbeats.
    /// Time to live that the peer's last PING granted, in deciseconds. 0 for unlimited.
    // Relaxed: behind the task that informs the I/O thread (`ConnectionEvent::GrantedTtl`); a later
    // value counts from the next look on.
    granted_ttl_ds: AtomicU32,
    /// Time of the last arrival in clock ticks. Kept only while a time to live is granted.
    heard_at: AtomicU64, // Relaxed: own, the reader's; a number to heartbeats.
    /// Time in clock ticks at which the PING that waits for its PONG was sent. 0 if no PING waits.
    // Relaxed: number, for a look.
    pinged: AtomicU64,
    /// Round-trip time of the last PONG in nanoseconds. 0 before the first PONG.
    // Relaxed: number, for a look.
    round_trip_ns: AtomicU64,
}

impl Liveness {
    /// Notes an arrival. Only one thread at a time reads and counts. The exception is an owner that
    /// gives up the connection, which ends the session.
    pub(super) fn record_arrival(&self) {
        self.arrivals.store(self.arrivals.load(Relaxed).wrapping_add(1), Relaxed);
        if self.granted_ttl_ds.load(Relaxed) != 0 {
            self.heard_at.store(clock::ticks(), Relaxed);
        }
    }

    /// Notes a time to live that a PING grants. Returns true for the first one of a session.
    pub(super) fn grant(&self, ttl_ds: u16) -> bool {
        ttl_ds != 0 && self.granted_ttl_ds.swap(ttl_ds.into(), Relaxed) == 0
    }

    /// Ends the session: revokes the time to live.
    pub(super) fn end_session(&self) {
        self.granted_ttl_ds.store(0, Relaxed);
    }

    /// Driver: notes that a PING is sent.
    pub(crate) fn note_ping(&self) {
        // The PONG of an earlier PING comes first.
        if self.pinged.load(Relaxed) == 0 {
            self.pinged.store(clock::ticks().max(1), Relaxed);
        }
    }

    /// Notes that a PONG has come.
    #[cold]
    pub(super) fn note_pong(&self) {
        let sent = self.pinged.swap(0, Relaxed);
        if sent != 0 {
            let took = clock::ticks_to_nanos(clock::ticks().saturating_sub(sent));
            self.round_trip_ns.store(took.max(1), Relaxed);
        }
    }

    /// Returns the round-trip time of the last heartbeat in nanoseconds. 0 if there was no
    /// heartbeat.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.round_trip_ns.load(Relaxed)
    }

    /// Returns a number that changes with each arrival.
    pub(crate) fn arrivals(&self) -> u32 {
        self.arrivals.load(Relaxed)
    }

    /// Returns the granted time to live.
    pub(crate) fn granted_ttl(&self) -> Duration {
        Duration::from_millis(u64::from(self.granted_ttl_ds.load(Relaxed)) * 100)
    }

    /// Returns the time of the last arrival on the tick clock, if a time to live was granted before
    /// it.
    pub(crate) fn heard_at(&self) -> Duration {
        Duration::from_nanos(clock::ticks_to_nanos(self.heard_at.load(Relaxed)))
    }
}
