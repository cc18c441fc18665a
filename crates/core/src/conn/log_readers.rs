//! The connections that read one log, as the I/O thread sees them. The I/O thread visits all of
//! them while messages come (`pipe::Broadcast`). Together they are one chore.
//!
//! With more than a few connections, the owner does not write to them itself but wakes the I/O
//! thread once. The I/O thread then writes the available bytes to one connection after the other,
//! round after round, until a round finds no new bytes. So writes become larger when messages come
//! faster, and publishing a message is always quick.

use super::{Connection, Handover, IoSide};
use std::time::{Duration, Instant};
use tautline_queue::LogLength;
use tautline_queue::handoff::chore::{self, Chore, Mark, ScheduledChore};
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_timing::rounds;

/// The connections that read one log.
pub(crate) struct LogReaders {
    log: LogLength,
    connections: Mutex<Vec<Arc<Connection>>>,
    mark: Mark,
    io: Arc<dyn IoSide>,
}

impl LogReaders {
    /// Returns the set of readers of this log, which is still empty.
    pub(crate) fn new(log: LogLength, io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(LogReaders { log, connections: Mutex::default(), mark: Mark::new(), io })
    }

    /// Owner: adds a connection that now reads the log.
    pub(crate) fn add(&self, connection: Arc<Connection>) {
        lock(&self.connections).push(connection);
    }

    /// Owner: removes a connection that no longer reads the log.
    pub(crate) fn remove(&self, connection: &Arc<Connection>) {
        lock(&self.connections).retain(|other| !Arc::ptr_eq(other, connection));
    }

    /// Owner: hands published messages to the I/O thread. One load while the I/O thread is at work.
    #[inline]
    pub(crate) fn schedule_round(self: &Arc<Self>) {
        if !self.mark.is_set() {
            self.start();
        }
    }

    #[cold]
    fn start(self: &Arc<Self>) {
        if self.mark.set() {
            self.io.hand_over(Handover::Visit(self.clone(), Duration::ZERO));
        }
    }
}

impl Chore for LogReaders {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

impl ScheduledChore for LogReaders {
    /// Runs one round.
    fn run(&self) -> Option<Duration> {
        let (before, start) = (self.log.now(), Instant::now());
        // The clone keeps the lock short: the owner, which adds and removes connections, must not
        // wait for a round.
        let connections = lock(&self.connections).clone();
        let mut owner_writes = false;
        for connection in connections {
            owner_writes |= connection.pump_now().is_none();
        }
        let grown = || self.log.now() != before;
        let again = owner_writes || grown() || {
            chore::release(std::slice::from_ref(self));
            grown() && self.mark.set()
        };
        again.then(|| {
            rounds::pause_after_log_round(start.elapsed(), self.log.now().wrapping_sub(before), owner_writes)
        })
    }
}
