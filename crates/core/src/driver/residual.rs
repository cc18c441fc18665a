//! The residual watch: flushes what senders left in their queues by the flush rule.
//!
//! A sender that leaves bytes behind, and does not know that it will write them itself in a moment, wakes this thread with the first of
//! them. (To set a timer takes as long, on a virtual machine: it makes the processor's clock interrupt anew.) A sender that goes on
//! looks at the clock again soon and flushes itself; one that has not for [`QUIET_NS`] has stopped, and what it left is written here.
//! Otherwise this thread looks again after 10 µs, and less and less often, up to every 500 µs, as long as the sender is at work: at the end
//! of a stream the last messages wait no longer than the stream took. (Each look takes one of the two ends off its processor where there
//! are but two.) Two rounds that find nothing to do are the end of it, but for
//! those who foresee the ends of their bursts: they are looked at every 500 µs until they have sent nothing for 20 ms, in case that they
//! are wrong once.

use std::time::Duration;

use crate::conn::{Connection, Flushed};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::{Arc, Mutex, barrier_heavy, lock};
use tautline_io::clock;
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;

const FIRST: Duration = Duration::from_micros(10);
/// While a stream goes on, at most.
const SLOWEST: Duration = Duration::from_micros(500);
/// Where somebody may have stopped.
const LATER: Duration = Duration::from_micros(200);
/// Where all foresee what they do.
const SLOW: Duration = Duration::from_micros(500);
/// A sender that has looked at the clock or written so recently is at work. As long as the usual gap of the flush rule; whoever has a longer one looks more often than that.
const QUIET_NS: u64 = 8_000;
/// In a stream it is at work for this part of the time between two rounds, too: it may have lost its processor to this very thread.
const PATIENCE: u32 = 8;
/// Rounds without anything to flush before a connection is let go.
const IDLE_ROUNDS: u32 = 2;
/// So long after its last message a connection is let go even if it foresees what it does.
const GONE_NS: u64 = 20_000_000;

struct Watched {
    connection: Arc<Connection>,
    idle: u32,
}

struct State {
    watched: Vec<Watched>,
    /// The timer is armed, or a round is going on.
    running: bool,
    /// The time to the next round if the sender was at work in the last one, else zero.
    interval: Duration,
}

/// What a round has found.
#[derive(Default, Clone, Copy)]
struct Found {
    /// Senders at work.
    at_work: bool,
    /// Others that do not foresee what they do.
    unsure: bool,
}

impl State {
    /// So long after it was seen at work a sender still counts as such.
    fn quiet_ns(&self) -> u64 {
        QUIET_NS.max((self.interval / PATIENCE).as_nanos() as u64)
    }

    /// The time to the next round.
    fn next_interval(&mut self, found: Found) -> Duration {
        let before = std::mem::take(&mut self.interval);
        match found {
            Found { at_work: true, .. } => {
                self.interval = (before * 2).clamp(FIRST, SLOWEST);
                self.interval
            }
            Found { unsure: true, .. } => LATER,
            _ => SLOW,
        }
    }
}

/// The residual watch of one I/O thread.
pub(super) struct Residual {
    timer: TimerFd,
    state: Mutex<State>,
    /// Somebody has left something just now and goes on, or not.
    hurried: AtomicBool,
}

impl Residual {
    pub(super) fn new() -> std::io::Result<Self> {
        let state = State { watched: Vec::new(), running: false, interval: Duration::ZERO };
        Ok(Residual { timer: TimerFd::new()?, state: Mutex::new(state), hurried: AtomicBool::new(false) })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread: the connection has set its `residual_armed`. Then `start` or `hurry`.
    pub(super) fn watch(&self, connection: Arc<Connection>) {
        lock(&self.state).watched.push(Watched { connection, idle: 0 });
    }

    /// Any thread: a round is wanted, not at once.
    pub(super) fn start(&self) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.running, true) {
            self.timer.arm(LATER);
        }
    }

    /// Any thread: a round is wanted. True: the I/O thread must be woken.
    pub(super) fn hurry(&self) -> bool {
        // AcqRel pairs with the swap in `run_if_hurried`, which clears before it looks.
        !self.hurried.swap(true, AcqRel)
    }

    /// I/O thread: a round, if somebody wants one now.
    pub(super) fn run_if_hurried(&self) {
        if self.hurried.load(Relaxed) && self.hurried.swap(false, AcqRel) {
            lock(&self.state).interval = Duration::ZERO;
            self.round();
        }
    }

    /// I/O thread: the timer has expired.
    pub(super) fn expired(&self) {
        if self.timer.drain() {
            self.round();
        }
    }

    fn round(&self) {
        let (mut round, quiet) = {
            let mut state = lock(&self.state);
            state.running = true;
            (std::mem::take(&mut state.watched), clock::nanos_to_ticks(state.quiet_ns()))
        };
        let now = clock::ticks();
        let gone = clock::nanos_to_ticks(GONE_NS);
        let mut found = Found::default();
        let mut let_go = Vec::new();
        round.retain_mut(|watched| {
            let connection = &watched.connection;
            let (worked_at, foreseen) = connection.worked_at();
            let silent = now.saturating_sub(worked_at);
            // Whoever has written for longer than that just now is at it still.
            let at_work = silent < quiet || connection.is_being_written();
            found.at_work |= at_work && !foreseen;
            found.unsure |= !at_work && !foreseen;
            // What is marked the sweep writes.
            let pending = !at_work && !connection.swept.is_set() && connection.has_pending();
            watched.idle =
                if at_work || pending || (foreseen && silent < gone) { 0 } else { watched.idle + 1 };
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
            connection.give_hint();
            connection.residual_armed.store(false, SeqCst);
            if !blocked {
                let_go.push(connection.clone());
            }
            false
        });
        if !let_go.is_empty() {
            // Pairs with the fence in `Connection::watch_residual` and the light barrier in `take_hint`. One for all, as it takes its time.
            barrier_heavy();
        }
        let slipped = let_go.into_iter().filter(|connection| {
            !connection.swept.is_set()
                && connection.has_pending()
                && !connection.residual_armed.swap(true, SeqCst)
        });
        round.extend(slipped.map(|connection| Watched { connection, idle: 0 }));
        let mut state = lock(&self.state);
        state.watched.append(&mut round);
        state.running = !state.watched.is_empty();
        let next = state.next_interval(found);
        if state.running {
            self.timer.arm(next);
        } else {
            self.timer.disarm();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rounds_become_rare_while_the_sender_is_at_work() {
        let mut state = State { watched: Vec::new(), running: true, interval: Duration::ZERO };
        let mut micros = |at_work, unsure| state.next_interval(Found { at_work, unsure }).as_micros();
        let all: Vec<_> = (0..8).map(|_| micros(true, false)).collect();
        assert_eq!(all, [10, 20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(micros(false, true), 200, "to see whether that is the end");
        assert_eq!(micros(true, true), 10);
        assert_eq!(micros(false, false), 500, "whoever foresees what he does is looked at rarely");
    }

    #[test]
    fn the_longer_a_stream_goes_on_the_more_it_may_be_interrupted() {
        let mut state = State { watched: Vec::new(), running: true, interval: Duration::ZERO };
        let found = Found { at_work: true, unsure: false };
        let quiet: Vec<_> = (0..8).map(|_| (state.next_interval(found), state.quiet_ns() / 1000).1).collect();
        assert_eq!(quiet, [8, 8, 8, 10, 20, 40, 62, 62]);
        state.next_interval(Found { at_work: false, unsure: true });
        assert_eq!(state.quiet_ns(), QUIET_NS);
    }

    #[test]
    fn one_of_those_who_hurry_wakes_the_thread() {
        let residual = Residual::new().unwrap();
        assert!(residual.hurry() && !residual.hurry());
        residual.run_if_hurried();
        assert!(residual.hurry(), "after the round, again");
    }
}
