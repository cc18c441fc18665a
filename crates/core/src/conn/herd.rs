//! The connections that read one log, as the I/O thread sees them: it goes over all of them while messages come (`pipe::Broadcast`).
//!
//! With more than a few connections the owner does not write to them itself: it wakes the I/O thread once, which then writes to one after the
//! other what there is, round after round, until a round has found nothing new. So the faster messages come, the more of them go into
//! one write, and publishing one never takes long.
//! [`Rounds`] says when the rounds begin and end.

use super::rounds::Rounds;
use super::{Connection, IoSide};
use crate::queue::LogLength;
use crate::sync::{Arc, Mutex, lock};

/// The connections that read one log.
pub(crate) struct Herd {
    log: LogLength,
    connections: Mutex<Vec<Arc<Connection>>>,
    rounds: Rounds,
    io: Arc<dyn IoSide>,
}

impl Herd {
    /// The readers of this log: none yet.
    pub(crate) fn new(log: LogLength, io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(Herd { log, connections: Mutex::default(), rounds: Rounds::new(), io })
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
        if !self.rounds.under_way() {
            self.start();
        }
    }

    #[cold]
    fn start(self: &Arc<Self>) {
        if self.rounds.start() {
            self.io.sweep(self.clone());
        }
    }

    /// I/O thread: one round. True if there must be another one.
    pub(crate) fn round(&self) -> bool {
        let length = || self.log.now();
        self.rounds.round(length, || {
            // The list is short-lived: the owner, who adds and removes, must not wait for a round.
            let connections = lock(&self.connections).clone();
            let mut missed = false;
            for connection in connections {
                missed |= connection.pump_now().is_none();
            }
            missed
        })
    }
}
