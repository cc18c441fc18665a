//! The sweep: writes the queues of connections whose senders have too many of them to do it themselves (`conn::crowd`).
//!
//! A sender marks a connection and adds it to the dirty list, once until the sweep has come by; the first one wakes the I/O thread.
//! While it writes one queue after the other, the senders fill them again, so that the more there is to do the more goes out with
//! each write. The I/O thread's other duties come in between, after every few connections.

use crate::conn::dirty::{Added, DirtyList};
use crate::conn::{Connection, Flushed};
use crate::sync::Arc;

/// Connections swept before others get their turn.
const BATCH: usize = 64;
/// Most bytes of one connection in one round.
const MOST_BYTES: u64 = 256 * 1024;

/// The sweep of one I/O thread.
pub(super) struct Sweep {
    dirty: DirtyList<Arc<Connection>>,
}

/// What the I/O thread has taken from the list and not written yet.
pub(super) type Work = Vec<Arc<Connection>>;

impl Sweep {
    pub(super) fn new() -> Self {
        Sweep { dirty: DirtyList::new() }
    }

    /// Any thread: a connection that was just marked.
    pub(super) fn add(&self, connection: &Arc<Connection>) -> Added {
        self.dirty.add(connection.clone())
    }

    /// Whether all that was marked is written.
    pub(super) fn is_idle(&self) -> bool {
        self.dirty.is_idle()
    }

    /// I/O thread: writes some queues. True if there may be more.
    pub(super) fn run(&self, work: &mut Work) -> bool {
        if work.is_empty() {
            if !self.dirty.take(work, |connection| &connection.swept) {
                return false;
            }
            // In the order of the list, from the end.
            work.reverse();
        }
        for connection in work.drain(work.len().saturating_sub(BATCH)..).rev() {
            match connection.flush_some(MOST_BYTES) {
                Some(Flushed::Drained) => connection.tell_room(),
                Some(Flushed::NoLink | Flushed::Lost(_)) => {}
                Some(Flushed::Blocked) => connection.want_write(),
                Some(Flushed::Partly) => {
                    if connection.swept.set() {
                        self.add(&connection);
                    }
                }
                // Its owner is writing, or waits for the kernel.
                None => connection.watch_residual(),
            }
        }
        true
    }
}
