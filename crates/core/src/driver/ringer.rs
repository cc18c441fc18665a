//! The timer behind `conn::Summons`: wakes inproc receivers whose publisher has not come to do it.

use std::time::Duration;

use crate::conn::Summons;
use crate::sync::{Arc, Mutex, lock};
use tautline_io::fd::BorrowedFd;
use tautline_io::timer::TimerFd;

const FIRST: Duration = Duration::from_micros(30);
/// While the publishers are at work.
const BUSY: Duration = Duration::from_micros(300);

/// The timer of one I/O thread.
pub(super) struct Ringer {
    timer: TimerFd,
    /// Each with the rounds of its owner when it was looked at last.
    waiting: Mutex<Vec<(Arc<Summons>, u32)>>,
}

impl Ringer {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Ringer { timer: TimerFd::new()?, waiting: Mutex::default() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Any thread.
    pub(super) fn ring_later(&self, summons: &Arc<Summons>) {
        lock(&self.waiting).push((summons.clone(), summons.rounds()));
        self.timer.arm(FIRST);
    }

    /// I/O thread: the time is over.
    pub(super) fn expired(&self) {
        self.timer.drain();
        let mut due = std::mem::take(&mut *lock(&self.waiting));
        due.retain_mut(|(summons, seen)| summons.overdue(seen));
        if !due.is_empty() {
            let mut waiting = lock(&self.waiting);
            let alone = waiting.is_empty();
            waiting.append(&mut due);
            if alone {
                self.timer.arm(BUSY);
            }
        }
    }
}
