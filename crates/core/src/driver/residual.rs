//! The residual watch: flushes what senders left in their queues by the flush rule; `timing::watch`
//! says when.
//!
//! A sender that leaves bytes behind, and does not know that it will write them itself in a moment,
//! wakes this thread with the first of them. (To set a timer takes as long, on a virtual machine:
//! it makes the processor's clock interrupt anew.) A sender that goes on looks at the clock again
//! soon and flushes itself; what one that has stopped has left is written here.

use std::time::Duration;

use crate::conn::{Connection, Flushed};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::{Arc, Mutex, barrier_heavy, lock};
use crate::timing::watch::{LATER, Watch};
use tautline_io::clock;
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;

struct Watched {
    connection: Arc<Connection>,
    idle: u32,
}

struct State {
    watched: Vec<Watched>,
    /// The timer is armed, or a round is going on.
    running: bool,
    watch: Watch,
}

/// The residual watch of one I/O thread.
pub(super) struct Residual {
    timer: TimerFd,
    state: Mutex<State>,
    /// A round is wanted now.
    // Relaxed: look: the swap decides, and the I/O thread is woken behind `hurry`.
    hurried: AtomicBool,
}

impl Residual {
    pub(super) fn new() -> std::io::Result<Self> {
        let state = State { watched: Vec::new(), running: false, watch: Watch::default() };
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
            self.timer.arm(Duration::from_nanos(LATER));
        }
    }

    /// Any thread: a round is wanted. True: the I/O thread must be woken.
    pub(super) fn hurry(&self) -> bool {
        // AcqRel pairs with the swap in `run_if_hurried`, which clears before it looks.
        !self.hurried.swap(true, AcqRel)
    }

    /// I/O thread: a round, if one is wanted now.
    pub(super) fn run_if_hurried(&self) {
        if self.hurried.load(Relaxed) && self.hurried.swap(false, AcqRel) {
            lock(&self.state).watch.restart();
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
        let (mut round, mut looks) = {
            let mut state = lock(&self.state);
            state.running = true;
            (std::mem::take(&mut state.watched), state.watch.round(clock::ticks()))
        };
        let mut let_go = Vec::new();
        round.retain_mut(|watched| {
            let connection = &watched.connection;
            let owner = connection.owner_at_work();
            let at_work = looks.is_at_work(owner);
            // What is marked the sweep writes.
            let pending = !at_work && !connection.swept.is_set() && connection.has_pending();
            let idle = looks.idle(owner, watched.idle, at_work, pending);
            let mut blocked = false;
            if pending {
                match connection.pump_now() {
                    Some(Flushed::Drained) => connection.give_hint(),
                    // Writability or the next session takes over.
                    Some(_) => blocked = true,
                    None => {}
                }
            }
            if let (false, Some(idle)) = (blocked, idle) {
                watched.idle = idle;
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
            // Pairs with the fence in `Connection::watch_residual` and the light barrier in
            // `take_hint`. One for all, as it takes its time. An owner that has taken the hint, and
            // does not see yet that nothing is armed, has published before this barrier: that is
            // seen below.
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
        let next = state.watch.next(&looks);
        if state.running {
            self.timer.arm(Duration::from_nanos(next));
        } else {
            self.timer.disarm();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_of_those_who_hurry_wakes_the_thread() {
        let residual = Residual::new().unwrap();
        assert!(residual.hurry() && !residual.hurry());
        residual.run_if_hurried();
        assert!(residual.hurry(), "after the round, again");
    }
}
