//! The sweep: writes the queues of connections whose senders have too many connections to do it
//! themselves (`timing::crowd`).
//!
//! A sender marks a connection and adds it to the list of chores, once per round. An addition to an
//! empty list wakes the I/O thread. While the I/O thread writes one queue after the other, the
//! senders refill them. So the more work there is, the more bytes each write carries. The I/O
//! thread does its other duties in between, after every few connections.

use crate::conn::{Connection, Flushed};
use tautline_queue::handoff::chore::{self, Chore, Chores, Mark};
use tautline_queue::sync::Arc;
use tautline_timing::{RARE_INTERVAL, SEGMENT};

/// Maximum number of bytes of one connection in one round.
const MOST_BYTES: u64 = 4 * SEGMENT as u64;

/// A connection that its senders leave to the sweep.
pub(super) struct Swept(pub(super) Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.sweep_mark
    }
}

/// I/O thread: writes some queues of the `marked` connections. Returns false if it is idle until a
/// connection is added.
pub(super) fn run(marked: &Chores<Swept>, work: &mut Vec<Swept>) -> bool {
    if work.is_empty() {
        if !marked.take(work) {
            return false;
        }
        chore::release(work);
        // The queues are taken from the end, so reverse the list to keep its order.
        work.reverse();
    }
    for Swept(connection) in work.drain(work.len().saturating_sub(RARE_INTERVAL as usize)..).rev() {
        match connection.flush_some(MOST_BYTES, None) {
            Some(Flushed::Drained) => connection.notify_room(),
            Some(Flushed::NoLink | Flushed::Lost(_)) => {}
            Some(Flushed::Blocked) => {
                connection.want_write();
            }
            Some(Flushed::Partly) => {
                if connection.sweep_mark.set() {
                    marked.add(Swept(connection));
                }
            }
            // The owner is writing, or it waits for the kernel.
            None => {
                connection.watch_residual(true);
            }
        }
    }
    true
}
