//! Waking the inproc receivers of one publisher: all together, and not with every message.
//!
//! To wake a sleeping thread costs time here, and a change of threads there. If every message woke
//! every receiver that has just gone to sleep, several receivers would get a few messages at a time
//! and the processors would do little else. So the publisher rings them by a rule of its own
//! (`pattern::fan_out`): at once for the first message of a lull, seldom in a stream. What it
//! leaves unrung is covered by a timer of the I/O thread, like what the flush rule leaves queued.
//! [`Alarm`] says when that timer begins and ends.

use super::IoSide;
use super::alarm::Alarm;
use super::inproc::Doorbell;
use crate::sync::{Arc, Mutex, lock};

/// The inproc receivers of one publisher.
pub(crate) struct Summons {
    bells: Mutex<Vec<Doorbell>>,
    alarm: Alarm,
    io: Arc<dyn IoSide>,
}

impl std::fmt::Debug for Summons {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summons").finish_non_exhaustive()
    }
}

impl Summons {
    /// Without receivers yet.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(Summons { bells: Mutex::default(), alarm: Alarm::new(), io })
    }

    /// Owner: one more receiver. Those that are gone are forgotten.
    pub(crate) fn add(&self, bell: Doorbell) {
        let mut bells = lock(&self.bells);
        bells.retain(|bell| !bell.is_gone());
        bells.push(bell);
    }

    /// Owner: wakes all that sleep.
    pub(crate) fn ring(&self) {
        self.alarm.told();
        self.ring_all();
    }

    fn ring_all(&self) {
        lock(&self.bells).iter().for_each(Doorbell::ring);
    }

    /// Owner: has published and not rung. One load if the timer runs already.
    pub(crate) fn ring_later(self: &Arc<Self>) {
        if self.alarm.later() {
            self.io.ring_later(self);
        }
    }

    /// Owner: whether the timer has stopped since this was last asked. One load; clears the hint.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        self.alarm.take_hint()
    }

    /// I/O thread: the timer has expired; `seen` are the rounds at the last time. True if it must
    /// run on, because the owner is at work.
    pub(crate) fn overdue(&self, seen: &mut u32) -> bool {
        self.alarm.overdue(seen, || self.ring_all())
    }

    /// How often the owner has rung.
    pub(crate) fn rounds(&self) -> u32 {
        self.alarm.rounds()
    }
}
