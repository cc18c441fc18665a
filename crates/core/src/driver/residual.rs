//! The residual watch: flushes what senders left in their queues by the flush rule; `timing::watch`
//! says when.
//!
//! A sender that leaves bytes behind, and does not know that it will write them itself in a moment,
//! wakes this thread with the first of them. (To set a timer takes as long, on a virtual machine:
//! it makes the processor's clock interrupt anew.) A sender that goes on looks at the clock again
//! soon and flushes itself; what one that has stopped has left is written here.

use std::time::Duration;

use crate::conn::chore::{self, Chore, Chores, Mark};
use crate::conn::{Connection, Flushed};
use crate::sync::{Arc, Mutex, lock};
use crate::timing::watch::{LATER, Round, Watch};
use tautline_io::clock;
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;

/// A connection whose owner may have left something.
struct Watched {
    connection: Arc<Connection>,
    /// Looks in a row that have found nothing to write.
    idle: u32,
}

impl Chore for Watched {
    fn mark(&self) -> &Mark {
        &self.connection.watched
    }

    fn give_hint(&self) {
        self.connection.give_hint();
    }
}

/// What only the I/O thread touches.
#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    watch: Watch,
}

/// The residual watch of one I/O thread.
pub(super) struct Residual {
    timer: TimerFd,
    /// On their way to `watched`. Asleep: the timer is not armed, and no round is going on.
    new: Chores<Watched>,
    state: Mutex<State>,
}

impl Residual {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Residual { timer: TimerFd::new()?, new: Chores::new(), state: Mutex::default() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread, which has just marked the connection: looks after it, `soon` or not quite so
    /// soon. True: the I/O thread must be woken.
    pub(super) fn watch(&self, connection: Arc<Connection>, soon: bool) -> bool {
        let added = self.new.add(Watched { connection, idle: 0 });
        if soon {
            return self.hurry();
        }
        if added.wake {
            self.timer.arm(Duration::from_nanos(LATER));
        }
        false
    }

    /// Any thread: a round is wanted. True: the I/O thread must be woken.
    pub(super) fn hurry(&self) -> bool {
        self.new.hurry()
    }

    /// I/O thread: a round, if one is wanted now.
    pub(super) fn run_if_hurried(&self) {
        if self.new.is_hurried() {
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
        let State { watched, watch } = &mut *lock(&self.state);
        self.new.take(watched);
        let mut looks = Round::begin(clock::ticks());
        let mut gone = Vec::new();
        watched.retain_mut(|watched| {
            let connection = &watched.connection;
            let owner = connection.owner_at_work();
            let at_work = looks.is_at_work(owner);
            // What is marked the sweep writes.
            let pending = !at_work && !connection.swept.is_set() && connection.has_pending();
            let idle = looks.idle(owner, watched.idle, at_work, pending);
            match pending.then(|| connection.pump_now()).flatten() {
                Some(Flushed::Drained) => connection.give_hint(),
                // The kernel is full, or there is no session: when that changes, what is left is
                // written.
                Some(_) => {
                    chore::hand_on(watched);
                    return false;
                }
                None => {}
            }
            match idle {
                Some(idle) => watched.idle = idle,
                None => gone.push(Watched { connection: connection.clone(), idle: 0 }),
            }
            idle.is_some()
        });
        chore::let_go(&gone);
        watched.extend(gone.into_iter().filter(|Watched { connection, .. }| {
            !connection.swept.is_set() && connection.has_pending() && connection.watched.set()
        }));
        let next = Duration::from_nanos(watch.next(&looks));
        if watched.is_empty() {
            // Before the next addition, which arms it.
            self.timer.disarm();
        }
        if self.new.take(watched) {
            self.timer.arm(next);
        }
    }
}
