//! The residual watch: flushes the bytes that senders left in their queues because of the flush
//! rule. `timing::supervisor` decides when.
//!
//! If a sender leaves bytes behind and does not know that it will flush them in a moment, it wakes
//! this thread when it queues the first of them. (On a virtual machine setting a timer takes as
//! long, because it reprograms the processor's clock interrupt.) A sender that continues checks the
//! clock again soon and flushes itself. If a sender has stopped, its bytes are written here.

use std::time::Duration;

use crate::conn::{Connection, Flushed};
use tautline_io::clock;
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;
use tautline_queue::handoff::chore::{self, Chore, Chores, Mark};
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_timing::supervisor::{FOLLOW_UP_CHECK_NS, FlushSupervisor, SupervisorRound};

/// A connection whose owner may have left bytes.
pub(super) struct ResidualEntry {
    connection: Arc<Connection>,
    /// Number of consecutive checks that found no bytes to write.
    idle: u32,
}

impl Chore for ResidualEntry {
    fn mark(&self) -> &Mark {
        &self.connection.residual_mark
    }

    fn give_hint(&self) {
        self.connection.give_hint();
    }
}

/// State that only the I/O thread uses.
#[derive(Default)]
struct ResidualState {
    watched: Vec<ResidualEntry>,
    watch: FlushSupervisor,
}

/// The residual watch of one I/O thread.
pub(super) struct Residual {
    timer: TimerFd,
    /// New connections that are not in `watched` yet. This list counts as asleep while the timer is
    /// not armed and no round is running.
    pub(super) new: Chores<ResidualEntry>,
    state: Mutex<ResidualState>,
}

impl Residual {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Residual { timer: TimerFd::new()?, new: Chores::new(), state: Mutex::default() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread that has just marked the connection: adds it to the watch. `soon` selects the
    /// shorter delay. Returns true if the I/O thread must be woken.
    pub(super) fn watch(&self, connection: Arc<Connection>, soon: bool) -> bool {
        let added = self.new.add(ResidualEntry { connection, idle: 0 });
        if soon {
            return self.new.hurry();
        }
        if added.wake {
            self.timer.arm(Duration::from_nanos(FOLLOW_UP_CHECK_NS));
        }
        false
    }

    /// I/O thread: runs a round if one was requested.
    pub(super) fn run_if_hurried(&self) {
        if self.new.is_hurried() {
            lock(&self.state).watch.restart();
            self.round();
        }
    }

    /// I/O thread: handles the expired timer.
    pub(super) fn handle_expiry(&self) {
        if self.timer.drain() {
            self.round();
        }
    }

    fn round(&self) {
        let ResidualState { watched, watch } = &mut *lock(&self.state);
        self.new.take(watched);
        let mut looks = SupervisorRound::begin(clock::ticks());
        let mut gone = Vec::new();
        watched.retain_mut(|watched| {
            let connection = &watched.connection;
            let owner = connection.owner_at_work();
            let at_work = looks.check_owner(owner);
            // If the connection is marked for the sweep, the sweep writes it.
            let pending = !at_work && !connection.sweep_mark.is_set() && connection.has_pending();
            let idle = looks.idle(owner, watched.idle, at_work, pending);
            match pending.then(|| connection.pump_now()).flatten() {
                Some(Flushed::Drained) => connection.give_hint(),
                // The kernel's buffer is full, or there is no session. The bytes are written when
                // that changes.
                Some(_) => {
                    chore::release_unchecked(watched);
                    return false;
                }
                None => {}
            }
            match idle {
                Some(idle) => watched.idle = idle,
                None => gone.push(ResidualEntry { connection: connection.clone(), idle: 0 }),
            }
            idle.is_some()
        });
        chore::release(&gone);
        watched.extend(gone.into_iter().filter(|ResidualEntry { connection, .. }| {
            !connection.sweep_mark.is_set() && connection.has_pending() && connection.residual_mark.set()
        }));
        let next = Duration::from_nanos(watch.next(&looks));
        if watched.is_empty() {
            // Disarm before the next addition, which arms the timer.
            self.timer.disarm();
        }
        if self.new.take(watched) {
            self.timer.arm(next);
        }
    }
}
