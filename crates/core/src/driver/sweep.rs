//! The sweep: writes the queues of connections whose senders have too many connections to do it
//! themselves (`timing::crowd`).
//!
//! A sender marks a connection and adds it to the list of chores, once per round. An addition to an
//! empty list wakes the I/O thread. While the I/O thread writes one queue after the other, the
//! senders refill them. So the more work there is, the more bytes each write carries. The I/O
//! thread does its other duties in between, after every few connections.
//!
//! Between rounds that found few bytes per connection the sweep may rest (`timing::rounds`). An
//! owner that goes to sleep ends the rest, because it will send no more messages for now.

use crate::conn::{Connection, Flushed};
use std::time::{Duration, Instant};
use tautline_queue::handoff::chore::{self, Added, Chore, Chores, Mark};
use tautline_queue::sync::Arc;
use tautline_timing::{RARE_INTERVAL, SEGMENT, rounds};

/// Maximum number of bytes of one connection in one round.
const MOST_BYTES: u64 = 4 * SEGMENT as u64;

/// The sweep of one I/O thread.
pub(super) struct Sweep {
    marked: Chores<Swept>,
}

/// A connection that its senders leave to the sweep.
struct Swept(Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.sweep_mark
    }
}

/// Connections that the I/O thread has taken from the list and not yet written.
pub(super) struct Work {
    connections: Vec<Swept>,
    round: Option<Round>,
    rests_until: Option<Instant>,
}

/// A running round.
struct Round {
    began: Instant,
    connections: usize,
    bytes: u64,
}

impl Round {
    /// Returns the delay before the next round, if `waiting` connections have bytes by now.
    fn pause(&self, waiting: usize) -> Option<Duration> {
        rounds::pause_after_sweep(self.began.elapsed(), self.connections, self.bytes, waiting)
    }
}

impl Work {
    pub(super) fn new() -> Self {
        Work { connections: Vec::new(), round: None, rests_until: None }
    }
}

/// Result of a step of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepStep {
    /// Idle until a connection is added.
    Idle,
    /// Another step at once.
    Go,
    /// Another step at this time, or when the sweep is hurried.
    PauseUntil(Instant),
}

impl Sweep {
    pub(super) fn new() -> Self {
        let marked = Chores::new();
        marked.go_on();
        Sweep { marked }
    }

    /// Any thread: adds a connection that was just marked.
    pub(super) fn add(&self, connection: &Arc<Connection>) -> Added {
        self.marked.add(Swept(connection.clone()))
    }

    /// True if all marked connections are written.
    pub(super) fn is_idle(&self) -> bool {
        self.marked.is_idle()
    }

    /// Owner, before it sleeps: ends the rest. Returns true if the I/O thread rests and must be
    /// woken.
    pub(super) fn hurry(&self) -> bool {
        self.marked.hurry()
    }

    /// I/O thread: writes some queues.
    pub(super) fn run(&self, work: &mut Work) -> SweepStep {
        if let Some(until) = work.rests_until {
            if !self.marked.is_hurried() && Instant::now() < until {
                return SweepStep::PauseUntil(until);
            }
            work.rests_until = None;
            self.marked.go_on();
        } else if work.connections.is_empty()
            && let Some(round) = work.round.take()
            && let Some(rest) = round.pause(self.marked.len())
            && self.marked.wait()
        {
            let until = Instant::now() + rest;
            work.rests_until = Some(until);
            return SweepStep::PauseUntil(until);
        }
        if work.connections.is_empty() {
            if !self.marked.take(&mut work.connections) {
                return SweepStep::Idle;
            }
            chore::release(&work.connections);
            work.round = Some(Round { began: Instant::now(), connections: work.connections.len(), bytes: 0 });
            // The queues are taken from the end, so reverse the list to keep its order.
            work.connections.reverse();
        }
        let Work { connections: work, round, .. } = work;
        let mut bytes = 0;
        for Swept(connection) in work.drain(work.len().saturating_sub(RARE_INTERVAL as usize)..).rev() {
            match connection.flush_some(MOST_BYTES, None, &mut bytes) {
                Some(Flushed::Drained) => connection.notify_room(),
                Some(Flushed::NoLink | Flushed::Lost(_)) => {}
                Some(Flushed::Blocked) => {
                    connection.want_write();
                }
                Some(Flushed::Partly) => {
                    if connection.sweep_mark.set() {
                        self.add(&connection);
                    }
                }
                // The owner is writing, or it waits for the kernel.
                None => connection.watch_residual(),
            }
        }
        if let Some(round) = round {
            round.bytes += bytes;
        }
        SweepStep::Go
    }
}
