//! Wakes the inproc receivers of one publisher: all together, and not with every message.
//!
//! Waking a sleeping thread costs time in the waking thread, and a thread switch in the other. If
//! every message woke every receiver that has just gone to sleep, several receivers would get a few
//! messages at a time, and the processors would mostly switch threads. So the publisher rings the
//! receivers by its own rule (`pattern::fan_out`): at once for the first message after a lull,
//! rarely in a stream. The remaining wake-ups are a chore of the I/O thread, which visits when a
//! timer expires, as it does for bytes that the flush rule leaves queued.

use super::inproc::Doorbell;
use super::{Handover, IoSide};
use std::time::Duration;
use tautline_queue::handoff::chore::{self, Chore, Hint, Mark, ScheduledChore};
use tautline_queue::sync::atomic::AtomicU32;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};
use tautline_timing::{WAKE, supervisor::FOLLOW_UP_CHECK_NS};

/// Delays of the timer: `FIRST` for the first visit, `BUSY` between visits while the owner is at
/// work.
const FIRST: Duration = Duration::from_nanos(WAKE);
const BUSY: Duration = Duration::from_nanos(FOLLOW_UP_CHECK_NS);

/// The inproc receivers of one publisher.
pub(crate) struct ReceiverWakeups {
    bells: Mutex<Vec<Doorbell>>,
    mark: Mark,
    hint: Hint,
    /// Number of times that the owner has rung.
    // Relaxed: number: the timer runs once more, or once less.
    rounds: AtomicU32,
    /// Value of `rounds` at the I/O thread's last visit.
    // Relaxed: number, as `rounds`.
    seen: AtomicU32,
    io: Arc<dyn IoSide>,
}

impl std::fmt::Debug for ReceiverWakeups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summons").finish_non_exhaustive()
    }
}

impl ReceiverWakeups {
    /// Returns a set without receivers.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Arc<Self> {
        Arc::new(ReceiverWakeups {
            bells: Mutex::default(),
            mark: Mark::new(),
            hint: Hint::new(),
            rounds: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            io,
        })
    }

    /// Owner: adds a receiver and removes closed ones.
    pub(crate) fn add(&self, bell: Doorbell) {
        let mut bells = lock(&self.bells);
        bells.retain(|bell| !bell.is_closed());
        bells.push(bell);
    }

    /// Owner: wakes all sleeping receivers.
    pub(crate) fn ring(&self) {
        self.rounds.fetch_add(1, Relaxed);
        self.ring_all();
    }

    fn ring_all(&self) {
        lock(&self.bells).iter().for_each(Doorbell::ring);
    }

    /// Owner: called after it has published without waking the receivers. Starts the timer; costs
    /// one load if the timer already runs.
    pub(crate) fn schedule_ring(self: &Arc<Self>) {
        if self.mark.claim_handover() {
            self.seen.store(self.rounds.load(Relaxed), Relaxed);
            self.io.hand_over(Handover::Visit(self.clone(), FIRST));
        }
    }

    /// Owner: returns true if the timer has stopped since the last call, and clears that hint.
    /// Costs one load if it has not.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        self.hint.take()
    }
}

impl Chore for ReceiverWakeups {
    fn mark(&self) -> &Mark {
        &self.mark
    }

    fn give_hint(&self) {
        self.hint.give();
    }
}

impl ScheduledChore for ReceiverWakeups {
    /// Wakes all sleeping receivers, unless the owner has done so since the last visit.
    fn run(&self) -> Option<Duration> {
        let rounds = self.rounds.load(Relaxed);
        if self.seen.swap(rounds, Relaxed) != rounds {
            return Some(BUSY);
        }
        chore::release(std::slice::from_ref(self));
        self.ring_all();
        None
    }
}
