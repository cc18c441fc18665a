//! Waking the inproc receivers of one publisher: all together, and not with every message.
//!
//! To wake a sleeping thread costs 6 µs here, and a change of threads there. If every message woke every receiver that has just gone to
//! sleep, several of them would get a few messages at a time and the processors little else to do. So the publisher rings them by a rule of
//! its own (`pattern::fan_out`): at once for the first message of a lull, seldom in a stream. What it leaves unrung is covered
//! by a timer of the I/O thread, like what the flush rule leaves queued.
//!
//! ```text
//! owner:       publish;  ring, or later:  [fence; armed?] -> armed = true, start the timer;  hint?  [light barrier] -> think again
//! I/O thread:  timer:  the owner has rung since? -> again later;   else  hint = true; armed = false  [heavy barrier]  ring
//! ```

use super::IoSide;
use super::inproc::Doorbell;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, fence};
use crate::sync::{Arc, Mutex, barrier_heavy, barrier_light, lock};

/// The inproc receivers of one publisher.
pub(crate) struct Summons {
    bells: Mutex<Vec<Doorbell>>,
    /// The timer runs.
    armed: AtomicBool,
    /// The timer has rung and stopped: the owner's next message must be thought about.
    hint: AtomicBool,
    /// How often the owner has rung.
    rounds: AtomicU32,
    io: Arc<dyn IoSide>,
}

impl std::fmt::Debug for Summons {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summons").finish_non_exhaustive()
    }
}

impl Summons {
    /// For nobody yet.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(Summons {
            bells: Mutex::default(),
            armed: AtomicBool::new(false),
            hint: AtomicBool::new(false),
            rounds: AtomicU32::new(0),
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
        lock(&self.bells).iter().for_each(Doorbell::ring);
    }

    /// Owner: has published and not rung. One load if the timer runs already.
    pub(crate) fn ring_later(self: &Arc<Self>) {
        // Store (the queues' tails), then load: pairs with the heavy barrier in `overdue`.
        fence(SeqCst);
        if !self.armed.load(Relaxed) && !self.armed.swap(true, AcqRel) {
            self.io.ring_later(self);
        }
    }

    /// Owner: whether the timer has stopped since this was last asked. One load; clears the hint.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        // Store (the queues' tails), then load: pairs with the heavy barrier in `overdue`.
        barrier_light();
        self.hint.load(Relaxed) && self.hint.swap(false, Relaxed)
    }

    /// I/O thread: the timer has expired; `seen` are the rounds at the last time. True if it must run on, because the owner is at work.
    pub(crate) fn overdue(&self, seen: &mut u32) -> bool {
        let rounds = self.rounds.load(Relaxed);
        if std::mem::replace(seen, rounds) != rounds {
            return true;
        }
        self.hint.store(true, Relaxed);
        self.armed.store(false, SeqCst);
        // The owner's next message either sees the hint, or was published before this and those who missed it are seen asleep now.
        barrier_heavy();
        lock(&self.bells).iter().for_each(Doorbell::ring);
        false
    }

    /// How often the owner has rung.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Relaxed)
    }
}
