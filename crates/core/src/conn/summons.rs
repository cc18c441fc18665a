//! Waking the inproc receivers of one publisher: all together, and not with every message.
//!
//! To wake a sleeping thread costs time here, and a change of threads there. If every message woke
//! every receiver that has just gone to sleep, several receivers would get a few messages at a time
//! and the processors would do little else. So the publisher rings them by a rule of its own
//! (`pattern::fan_out`): at once for the first message of a lull, seldom in a stream. What it
//! leaves unrung is a chore of the I/O thread, which comes by when a timer says so, like what the
//! flush rule leaves queued.

use super::IoSide;
use super::chore::{self, Chore, Hint, Mark, Visit};
use super::inproc::Doorbell;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};
use crate::timing::{WAKE, watch::LATER};
use std::time::Duration;

/// The timer, and the same while the owner is at work.
const FIRST: Duration = Duration::from_nanos(WAKE);
const BUSY: Duration = Duration::from_nanos(LATER);

/// The inproc receivers of one publisher.
pub(crate) struct Summons {
    bells: Mutex<Vec<Doorbell>>,
    mark: Mark,
    hint: Hint,
    /// How often the owner has rung.
    // Relaxed: number: the timer runs once more, or once less.
    rounds: AtomicU32,
    /// The same when the I/O thread last came by.
    // Relaxed: number, as `rounds`.
    seen: AtomicU32,
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
        Arc::new(Summons {
            bells: Mutex::default(),
            mark: Mark::new(),
            hint: Hint::new(),
            rounds: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            io,
        })
    }

    /// Owner: one more receiver. Those that are gone are forgotten.
    pub(crate) fn add(&self, bell: Doorbell) {
        let mut bells = lock(&self.bells);
        bells.retain(|bell| !bell.is_gone());
        bells.push(bell);
    }

    /// Owner: wakes all that sleep.
    pub(crate) fn ring(&self) {
        self.rounds.fetch_add(1, Relaxed);
        self.ring_all();
    }

    fn ring_all(&self) {
        lock(&self.bells).iter().for_each(Doorbell::ring);
    }

    /// Owner: has published and not rung. One load if the timer runs already.
    pub(crate) fn ring_later(self: &Arc<Self>) {
        if self.mark.is_to_be_handed_over() {
            self.seen.store(self.rounds.load(Relaxed), Relaxed);
            self.io.come_by(self.clone(), FIRST);
        }
    }

    /// Owner: whether the timer has stopped since this was last asked. One load; clears the hint.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        self.hint.take()
    }
}

impl Chore for Summons {
    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn give_hint(&self) {
        self.hint.give();
    }
}

impl Visit for Summons {
    /// Wakes all that sleep, unless the owner has done so since the last time.
    fn visit(&self) -> Option<Duration> {
        let rounds = self.rounds.load(Relaxed);
        if self.seen.swap(rounds, Relaxed) != rounds {
            return Some(BUSY);
        }
        chore::let_go(std::slice::from_ref(self));
        self.ring_all();
        None
    }
}
