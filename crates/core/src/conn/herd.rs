//! The connections that read one log, as the I/O thread sees them: it goes over all of them while
//! messages come (`pipe::Broadcast`). They are one chore of it.
//!
//! With more than a few connections the owner does not write to them itself: it wakes the I/O
//! thread once, which then writes to one after the other what there is, round after round, until a
//! round has found nothing new. So the faster messages come, the more of them go into one write,
//! and publishing one never takes long.

use super::chore::{self, Chore, Mark, Visit};
use super::{Connection, IoSide};
use crate::queue::LogLength;
use crate::sync::{Arc, Mutex, lock};
use crate::timing::rounds;
use std::time::{Duration, Instant};

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
        let (before, start) = (self.log.now(), Instant::now());
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
        again.then(|| rounds::after_log(start.elapsed(), self.log.now().wrapping_sub(before), owner_writes))
    }
}
