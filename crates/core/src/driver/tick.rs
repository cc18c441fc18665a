//! The periodic tick that supervises read sets whose owner keeps the baton while it is away.
//!
//! The tick runs only while an owner keeps a baton. An idle process has no tick. It watches the
//! sets whose owner has taken the baton, until the I/O thread listens for them again.

use std::time::Duration;

use crate::conn::reader::ReadSet;
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;
use tautline_queue::handoff::baton::{self, Tick};
use tautline_queue::sync::atomic::AtomicBool;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Half the maximum time that a message, a PING or a lost peer waits for an owner that is away.
const PERIOD: Duration = Duration::from_millis(4);

/// The tick of one I/O thread.
pub(super) struct Ticker {
    timer: TimerFd,
    on: AtomicBool,
    sets: Mutex<Vec<Arc<ReadSet>>>,
}

impl Ticker {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Ticker { timer: TimerFd::new()?, on: AtomicBool::new(false), sets: Mutex::default() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// True if the tick runs. Owners check this when they leave.
    pub(super) fn on(&self) -> &AtomicBool {
        &self.on
    }

    /// Any thread, after setting `on`: starts the tick.
    pub(super) fn start(&self) {
        self.timer.arm(PERIOD);
    }

    /// An owner, after it has taken the baton of this set.
    pub(super) fn add(&self, set: Arc<ReadSet>) {
        lock(&self.sets).push(set);
    }

    pub(super) fn remove(&self, set: &Arc<ReadSet>) {
        lock(&self.sets).retain(|watched| !Arc::ptr_eq(watched, set));
    }

    /// I/O thread: handles the end of a period.
    pub(super) fn handle_expiry(&self) {
        self.timer.drain();
        // Release the lock first: an owner that takes a baton must not wait for these reads.
        let visited = lock(&self.sets).clone();
        let mut live = false;
        for set in &visited {
            live |= set.io_tick() == Tick::Live;
        }
        // An owner adds its set before it keeps the baton, so the look at the list finds each kept
        // one.
        let mut sets = lock(&self.sets);
        sets.retain(|set| !set.baton.leave_tick());
        if live || baton::end_tick(&self.on, || sets.iter().any(|set| set.baton.is_kept())) {
            self.timer.arm(PERIOD);
        }
    }
}
