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
use tautline_queue::handoff::chore::{self, Chore, Chores, Mark};
use tautline_queue::sync::Arc;
use tautline_timing::{RARE_INTERVAL, SEGMENT, rounds};

/// Maximum number of bytes of one connection in one round.
const MOST_BYTES: u64 = 4 * SEGMENT as u64;

/// A connection that its senders leave to the sweep.
pub(super) struct Swept(pub(super) Arc<Connection>);

impl Chore for Swept {
    fn mark(&self) -> &Mark {
        &self.0.sweep_mark
    }
}

/// Connections that the I/O thread has taken from the list and not yet written.
#[derive(Default)]
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

/// Returns the list of connections that are left to the sweep of one I/O thread.
pub(super) fn new() -> Chores<Swept> {
    let marked = Chores::new();
    marked.go_on();
    marked
}

impl Work {
    /// I/O thread: writes some queues.
    pub(super) fn run(&mut self, marked: &Chores<Swept>) -> SweepStep {
        if let Some(until) = self.rests_until {
            if !marked.is_hurried() && Instant::now() < until {
                return SweepStep::PauseUntil(until);
            }
            self.rests_until = None;
            marked.go_on();
        } else if self.connections.is_empty()
            && let Some(round) = self.round.take()
            && let Some(rest) = round.pause(marked.len())
            && marked.wait()
        {
            let until = Instant::now() + rest;
            self.rests_until = Some(until);
            return SweepStep::PauseUntil(until);
        }
        if self.connections.is_empty() {
            if !marked.take(&mut self.connections) {
                return SweepStep::Idle;
            }
            chore::release(&self.connections);
            self.round = Some(Round { began: Instant::now(), connections: self.connections.len(), bytes: 0 });
            // The queues are taken from the end, so reverse the list to keep its order.
            self.connections.reverse();
        }
        let Work { connections: work, round, .. } = self;
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
                        marked.add(Swept(connection));
                    }
                }
                // The owner is writing, or it waits for the kernel.
                None => {
                    connection.watch_residual(true);
                }
            }
        }
        if let Some(round) = round {
            round.bytes += bytes;
        }
        SweepStep::Go
    }
}
