//! A chore: work that an owner leaves to the I/O thread. Examples: writing bytes of a queue
//! (`driver/residual.rs`, `driver/sweep.rs`), writing bytes of a log
//! (`conn::LogReaders` of core), waking receivers
//! (`conn::ReceiverWakeups`).
//!
//! ```text
//! owner:       publish   [light barrier]   marked? ──no──▶ mark it, hand it over
//! I/O thread:  visits, again and again, as long as it chooses
//!              clear the mark   give the hint   [heavy barrier]   look once more
//! ```
//!
//! The protocol leaves no message behind. The owner stores its message, and the I/O thread clears
//! the mark. Each side then loads the other's value behind a barrier, so at least one load sees the
//! other side's store. An owner that finds the mark set therefore knows that the I/O thread will
//! see its message, and pays one load for that. If the I/O thread's last look finds work, it does
//! the work, or marks the chore again and visits as before.
//!
//! An owner that mostly does the work itself does not check the mark with each message. Instead it
//! checks the [`Hint`] that the I/O thread has released the chore. The owner must handle the first
//! message after that hint: it does the work itself, or hands the chore over again. The I/O thread
//! clears the mark before it gives the hint, so an owner that takes the hint finds the mark
//! cleared.

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{Arc, Mutex, barrier_heavy, barrier_light, lock};
use std::time::Duration;

/// True while the I/O thread will visit the chore. One mark for each chore.
// Relaxed: fence, by `is_set` and `release`; the swaps decide.
#[derive(Debug)]
pub struct Mark(AtomicBool);

impl Mark {
    /// Returns a cleared mark.
    pub fn new() -> Self {
        Mark(AtomicBool::new(false))
    }

    /// Called by the owner after publishing. True if the I/O thread will still see the published
    /// message.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Store (the published message), then load: pairs with the heavy barrier in `release`.
        barrier_light();
        self.0.load(Relaxed)
    }

    /// Sets the mark. Returns true if it was not set; the caller then hands the chore over.
    #[inline]
    pub fn set(&self) -> bool {
        !self.0.swap(true, AcqRel)
    }

    /// Called by the owner after publishing. Returns true if the caller must hand the chore over.
    /// One load if the I/O thread will visit anyway.
    #[inline]
    pub fn claim_handover(&self) -> bool {
        !self.is_set() && self.set()
    }
}

/// True if the I/O thread has released a chore since the owner's last call of `take`.
// Relaxed: fence, by `take` and `release`; the swap decides which call takes it.
#[derive(Debug)]
pub struct Hint(AtomicBool);

impl Hint {
    /// Returns a cleared hint.
    pub fn new() -> Self {
        Hint(AtomicBool::new(false))
    }

    /// Called by the owner after publishing. Returns true if the I/O thread has released the chore,
    /// and clears the hint. One load if it is not set.
    #[inline]
    pub fn take(&self) -> bool {
        // Store (the published message), then load: pairs with the heavy barrier in `release`.
        barrier_light();
        // Acquire pairs with the swap in `give`: the mark is seen cleared.
        self.0.load(Relaxed) && self.0.swap(false, Acquire)
    }

    /// Sets the hint, so that the owner checks its next message.
    #[inline]
    pub fn give(&self) {
        // A swap, as in `release`.
        self.0.swap(true, AcqRel);
    }
}

/// Work that an owner leaves to the I/O thread.
pub trait Chore {
    /// Returns the mark of the chore.
    fn mark(&self) -> &Mark;
    /// Gives the hint, if the owner uses one.
    fn give_hint(&self) {}
}

/// A chore that the I/O thread visits at a given time.
pub trait ScheduledChore: Send + Sync {
    /// Called by the I/O thread to do the work. Returns the time until the next visit. `None` if
    /// the I/O thread has released the chore.
    fn run(&self) -> Option<Duration>;
}

/// Called by the I/O thread to release these chores: it will not visit them again. Afterwards the
/// caller sees all messages that the owners published before they could see the release, and must
/// look once more. A heavy barrier takes some microseconds; one barrier is enough for all chores.
pub fn release<T: Chore>(chores: &[T]) {
    if chores.is_empty() {
        return;
    }
    chores.iter().for_each(release_unchecked);
    barrier_heavy();
}

/// Called by the I/O thread to release this chore without a last look, because another event will
/// make it write the queued bytes.
pub fn release_unchecked<T: Chore>(chore: &T) {
    // A swap, not a store: loom lets the swaps of both sides pass over a store between them.
    chore.mark().0.swap(false, AcqRel);
    chore.give_hint();
}

impl<T: Chore> Chore for Arc<T> {
    fn mark(&self) -> &Mark {
        T::mark(self)
    }

    fn give_hint(&self) {
        T::give_hint(self);
    }
}

struct ChoreListState<T> {
    items: Vec<T>,
    /// True while the I/O thread works on the chores it took, or was notified.
    awake: bool,
    /// True if the I/O thread must continue at once.
    hurried: bool,
    /// Number of times that the list was taken.
    round: u32,
}

/// Result of adding a chore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// True if the I/O thread has no work from this list. The caller must notify it.
    pub wake: bool,
    /// The round in which the I/O thread will visit.
    pub round: u32,
}

/// List of chores that the I/O thread has not taken yet.
pub struct Chores<T>(Mutex<ChoreListState<T>>);

impl<T> Chores<T> {
    /// Returns an empty list. Its first addition must notify the I/O thread.
    pub fn new() -> Self {
        let state = ChoreListState { items: Vec::new(), awake: false, hurried: false, round: 0 };
        Chores(Mutex::new(state))
    }

    /// Adds a chore that the caller has just marked. Any thread may call it.
    #[inline]
    pub fn add(&self, item: T) -> Added {
        let mut state = lock(&self.0);
        state.items.push(item);
        Added { wake: !std::mem::replace(&mut state.awake, true), round: state.round }
    }

    /// True if the I/O thread has no work from this list, or will find no new chores.
    #[inline]
    pub fn is_idle(&self) -> bool {
        !lock(&self.0).awake
    }

    /// Asks for the waiting chores to be done now. Returns true if the caller must notify the I/O
    /// thread. Any thread may call it.
    pub fn hurry(&self) -> bool {
        let mut state = lock(&self.0);
        state.awake && !std::mem::replace(&mut state.hurried, true)
    }

    /// I/O thread: true if a thread has called `hurry` since the last call.
    pub fn is_hurried(&self) -> bool {
        std::mem::take(&mut lock(&self.0).hurried)
    }

    /// I/O thread: adds all chores to `out`, which holds its remaining work. Returns false if `out`
    /// stays empty; the next addition then notifies the I/O thread.
    pub fn take(&self, out: &mut Vec<T>) -> bool {
        let mut state = lock(&self.0);
        if state.items.is_empty() {
            state.awake = !out.is_empty();
            return state.awake;
        }
        state.round = state.round.wrapping_add(1);
        out.append(&mut state.items);
        true
    }
}

#[cfg(all(test, loom))]
#[path = "chore/loom_tests.rs"]
mod loom_tests;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl Chore for (Mark, Hint) {
        fn mark(&self) -> &Mark {
            &self.0
        }

        fn give_hint(&self) {
            self.1.give();
        }
    }

    #[test]
    fn chore_is_handed_over_once_until_released() {
        let chores = [(Mark::new(), Hint::new())];
        let (mark, hint) = &chores[0];
        for _ in 0..2 {
            assert!(mark.claim_handover() && !mark.claim_handover() && mark.is_set());
            assert!(!hint.take());
            release(&chores);
            assert!(!mark.is_set() && hint.take() && !hint.take());
        }
    }

    #[test]
    fn only_the_first_addition_wakes_until_nothing_is_found() {
        let list = Chores::new();
        let mut out = Vec::new();
        assert!(list.is_idle());
        assert_eq!(list.add(0), Added { wake: true, round: 0 });
        assert_eq!(list.add(1), Added { wake: false, round: 0 });
        for round in 1..3 {
            assert!(!list.is_idle());
            assert!(list.take(&mut out));
            assert_eq!(list.add(2), Added { wake: false, round });
        }
        assert!(list.take(&mut out) && list.take(&mut out) && !list.is_idle());
        assert_eq!(std::mem::take(&mut out), [0, 1, 2, 2]);
        assert!(!list.take(&mut out) && list.is_idle());
        assert_eq!(list.add(3), Added { wake: true, round: 3 });
    }

    #[test]
    fn a_hurry_wakes_once() {
        let list = Chores::new();
        assert!(!list.hurry(), "the list is empty");
        list.add(0);
        assert!(!list.is_hurried());
        assert!(list.hurry() && !list.hurry(), "one wake-up is enough");
        assert!(list.is_hurried() && !list.is_hurried());
    }
}
