//! The residual timer: flushes what senders left in their queues by the flush rule.
//!
//! A sender that leaves bytes behind arms it once (half a microsecond; waking this thread would cost six). It fires 20 µs later, slows down
//! to 200 µs while the senders keep flushing themselves, and stops after a few idle rounds.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::conn::{Connection, Flushed};
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::{Arc, Mutex, barrier_heavy, lock};
use tautline_io::timer::TimerFd;

const FIRST: Duration = Duration::from_micros(20);
const SLOWEST: Duration = Duration::from_micros(200);
/// Rounds without anything to flush before a connection is let go.
const IDLE_ROUNDS: u32 = 4;

struct Watched {
    connection: Arc<Connection>,
    /// `Connection::owner_flushes` in the last round.
    flushes: u32,
    /// Bytes that were pending in the last round.
    pending: u64,
    /// How long they have been growing without a flush.
    age: Duration,
    idle: u32,
}

impl Watched {
    /// Whether the sender is at work: it has flushed since the last round, or goes on appending and will flush soon.
    fn is_busy(&mut self, interval: Duration) -> bool {
        let flushes = self.connection.owner_flushes.load(Relaxed);
        // Somebody holds the pump: at work as well.
        let pending = self.connection.pending_bytes().unwrap_or(u64::MAX);
        let flushed = std::mem::replace(&mut self.flushes, flushes) != flushes;
        let grown = std::mem::replace(&mut self.pending, pending) != pending && pending > 0;
        self.age = if flushed || pending == 0 { Duration::ZERO } else { self.age + interval };
        flushed || (grown && self.age < SLOWEST)
    }
}

struct State {
    watched: Vec<Watched>,
    interval: Duration,
    running: bool,
}

/// The residual timer of one I/O thread.
pub(super) struct Residual {
    timer: TimerFd,
    state: Mutex<State>,
}

impl Residual {
    pub(super) fn new() -> std::io::Result<Self> {
        let state = State { watched: Vec::new(), interval: FIRST, running: false };
        Ok(Residual { timer: TimerFd::new()?, state: Mutex::new(state) })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread: the connection has set its `residual_armed`.
    pub(super) fn watch(&self, connection: Arc<Connection>) {
        let flushes = connection.owner_flushes.load(Relaxed);
        let pending = connection.pending_bytes().unwrap_or(0);
        let mut state = lock(&self.state);
        state.watched.push(Watched { connection, flushes, pending, age: Duration::ZERO, idle: 0 });
        if !state.running {
            state.running = true;
            state.interval = FIRST;
            self.timer.arm(FIRST);
        }
    }

    /// I/O thread: a round.
    pub(super) fn expired(&self) {
        self.timer.drain();
        let (mut round, interval) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.watched), state.interval)
        };
        let mut any_busy = false;
        round.retain_mut(|watched| {
            let busy = watched.is_busy(interval);
            any_busy |= busy;
            let connection = &watched.connection;
            // What is marked the sweep writes.
            let pending = !busy && !connection.swept.is_set() && connection.has_pending();
            watched.idle = if busy || pending { 0 } else { watched.idle + 1 };
            let mut blocked = false;
            if pending {
                match connection.pump_now() {
                    Some(Flushed::Drained) => connection.give_hint(),
                    // Writability or the next session takes over.
                    Some(_) => blocked = true,
                    None => {}
                }
            }
            if !blocked && watched.idle < IDLE_ROUNDS {
                return true;
            }
            // Let go, unless a message has slipped in: pairs with the fence in `Connection::watch_residual` and the light
            // barrier in `take_hint`.
            connection.give_hint();
            connection.residual_armed.store(false, SeqCst);
            if blocked {
                return false;
            }
            barrier_heavy();
            let slipped = !connection.swept.is_set()
                && connection.has_pending()
                && !connection.residual_armed.swap(true, SeqCst);
            watched.idle = 0;
            slipped
        });
        let mut state = lock(&self.state);
        state.watched.append(&mut round);
        state.running = !state.watched.is_empty();
        if state.running {
            state.interval = if any_busy { (state.interval * 2).min(SLOWEST) } else { FIRST };
            self.timer.arm(state.interval);
        }
    }
}
