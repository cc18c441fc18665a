//! The connections that read one log, as the I/O thread sees them: it goes over all of them while
//! messages come (`pipe::Broadcast`). They are one chore of it.
//!
//! With more than a few connections the owner does not write to them itself: it wakes the I/O
//! thread once, which then writes to one after the other what there is, round after round, until a
//! round has found nothing new. So the faster messages come, the more of them go into one write,
//! and publishing one never takes long.

use super::chore::{self, Chore, Mark, Visit};
use super::{Connection, IoSide};
use crate::ablation::{Rule, without};
use crate::queue::LogLength;
use crate::sync::{Arc, Mutex, lock};
use crate::timing::flush::FULL_BYTES;
use std::time::Duration;
use tautline_io::clock;

/// If this number of bytes is published during one round, messages come in a stream.
const STREAM_BYTES: u64 = FULL_BYTES / 16;
/// Shortest and longest rest between two rounds of a stream.
const SHORTEST_NS: u64 = 20_000;
const LONGEST_NS: u64 = 200_000;

/// The connections that read one log.
pub(crate) struct Herd {
    log: LogLength,
    connections: Mutex<Vec<Arc<Connection>>>,
    mark: Mark,
    io: Arc<dyn IoSide>,
}

impl Herd {
    /// The readers of this log: none yet.
    pub(crate) fn new(log: LogLength, io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(Herd { log, connections: Mutex::default(), mark: Mark::new(), io })
    }

    /// Owner: this connection reads the log now.
    pub(crate) fn add(&self, connection: Arc<Connection>) {
        lock(&self.connections).push(connection);
    }

    /// Owner: it does not any more.
    pub(crate) fn remove(&self, connection: &Arc<Connection>) {
        lock(&self.connections).retain(|other| !Arc::ptr_eq(other, connection));
    }

    /// Owner: something was published. One load while the I/O thread is at work.
    #[inline]
    pub(crate) fn look_after(self: &Arc<Self>) {
        if !self.mark.is_set() {
            self.start();
        }
    }

    #[cold]
    fn start(self: &Arc<Self>) {
        if self.mark.set() {
            self.io.come_by(self.clone(), Duration::ZERO);
        }
    }
}

impl Chore for Herd {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

impl Visit for Herd {
    /// One round.
    fn visit(&self) -> Option<Duration> {
        let (before, start) = (self.log.now(), clock::ticks());
        // The list is short-lived: the owner, which adds and removes, must not wait for a round.
        let connections = lock(&self.connections).clone();
        let mut owner_writes = false;
        for connection in connections {
            owner_writes |= connection.pump_now().is_none();
        }
        let grown = || self.log.now() != before;
        let again = owner_writes || grown() || {
            chore::let_go(std::slice::from_ref(self));
            grown() && self.mark.set()
        };
        let took = clock::ticks_to_nanos(clock::ticks().saturating_sub(start));
        again.then(|| pause(self.log.now().wrapping_sub(before), owner_writes, took))
    }
}

/// How long the next round waits, when during one of `took` nanoseconds `grown` bytes were
/// published, and the owner was writing to a peer itself or not.
///
/// Single messages are written at once. In a stream a short rest is good for both: the owner, which
/// may need this very core, publishes more for each write; and where it is at its high-water mark
/// and writes by itself, a round would do no more than look for what it has left.
fn pause(grown: u64, owner_writes: bool, took: u64) -> Duration {
    if without(Rule::HerdPause) {
        return Duration::ZERO;
    }
    let streams = (STREAM_BYTES..FULL_BYTES).contains(&grown);
    if streams || owner_writes && grown < FULL_BYTES {
        Duration::from_nanos((took / 2).clamp(SHORTEST_NS, LONGEST_NS))
    } else {
        Duration::ZERO
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_of_a_stream_wait_for_more() {
        let pause = |grown, owner_writes, micros: u64| pause(grown, owner_writes, 1000 * micros).as_micros();
        assert_eq!(pause(66, false, 300), 0, "a message now and then");
        assert_eq!(pause(STREAM_BYTES, false, 300), 150, "too little for a full write");
        assert_eq!(pause(FULL_BYTES, false, 300), 0, "enough for one");
        assert_eq!(pause(0, true, 10), 20, "the owner does it");
        assert_eq!(pause(0, true, 3000), 200);
        assert_eq!(pause(FULL_BYTES, true, 3000), 0);
    }
}
