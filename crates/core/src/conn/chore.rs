//! A chore: something that an owner leaves for the I/O thread. Bytes of a queue that are to be
//! written (`driver/residual.rs`, `driver/sweep.rs`), those of a log ([`Herd`](super::Herd)),
//! receivers that are to be woken ([`Summons`](super::Summons)).
//!
//! ```text
//! owner:       publish   [light barrier]   marked? ──no──▶ mark it, hand it over
//! I/O thread:  comes by, again and again, while it likes
//!              clear the mark   give the hint   [heavy barrier]   look once more
//! ```
//!
//! Nothing is left behind. Of the owner's store (what it published) and the I/O thread's (the
//! mark), each followed by a load of the other behind a barrier, at least one load sees the other
//! side's store. So an owner that finds the mark set knows that the I/O thread will see what it
//! published, and pays one load for that. What the I/O thread finds when it looks once more it
//! does, or marks the chore again and comes by as before.
//!
//! An owner that mostly does the work by itself does not ask for the mark with each message, but
//! for the [`Hint`]: that the I/O thread has let the chore go. The first message after that is one
//! that the owner must see to, by itself or by handing the chore over again. Hints and marks are
//! given and cleared in this order, so that the owner that takes the hint finds the mark cleared.

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{Arc, Mutex, barrier_heavy, barrier_light, lock};
use std::time::Duration;

/// Whether the I/O thread will come by. One for each chore.
// Relaxed: fence, by `is_set` and `let_go`; the swaps decide.
#[derive(Debug)]
pub(crate) struct Mark(AtomicBool);

impl Mark {
    /// It will not.
    pub(crate) fn new() -> Self {
        Mark(AtomicBool::new(false))
    }

    /// Owner, after publishing: whether the I/O thread will still see what was published.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Store (what was published), then load: pairs with the heavy barrier in `let_go`.
        barrier_light();
        self.0.load(Relaxed)
    }

    /// Sets the mark; true if it was not set: the caller hands the chore over.
    pub(crate) fn set(&self) -> bool {
        !self.0.swap(true, AcqRel)
    }

    /// Owner, after publishing: true if the caller is to hand the chore over. One load if the I/O
    /// thread will come by anyway.
    #[inline]
    pub(crate) fn is_to_be_handed_over(&self) -> bool {
        !self.is_set() && self.set()
    }
}

/// That the I/O thread has let go of a chore since the owner last asked.
// Relaxed: fence, by `take` and `let_go`; the swap decides which call takes it.
#[derive(Debug)]
pub(crate) struct Hint(AtomicBool);

impl Hint {
    /// It has not.
    pub(crate) fn new() -> Self {
        Hint(AtomicBool::new(false))
    }

    /// Owner, after publishing: whether it has. One load; clears the hint.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // Store (what was published), then load: pairs with the heavy barrier in `let_go`.
        barrier_light();
        // Acquire pairs with the swap in `give`: the mark is seen cleared.
        self.0.load(Relaxed) && self.0.swap(false, Acquire)
    }

    /// The owner must see to its next message.
    pub(crate) fn give(&self) {
        // A swap, as in `let_go`.
        self.0.swap(true, AcqRel);
    }
}

/// What an owner leaves for the I/O thread.
pub(crate) trait Chore {
    /// Its mark.
    fn mark(&self) -> &Mark;
    /// Gives the hint, if its owner asks for one.
    fn give_hint(&self) {}
}

/// A chore that the I/O thread comes by for at a time of its own.
pub(crate) trait Visit: Send + Sync {
    /// I/O thread: does what there is to do. After what time it must come by again, if at all; if
    /// not, it has let go.
    fn visit(&self) -> Option<Duration>;
}

/// I/O thread: comes by for these no more. Whatever their owners published before they could see
/// that is visible to the caller afterwards, which looks once more. A heavy barrier takes some
/// microseconds; one is enough for all.
pub(crate) fn let_go<T: Chore>(chores: &[T]) {
    if chores.is_empty() {
        return;
    }
    chores.iter().for_each(hand_on);
    barrier_heavy();
}

/// I/O thread: comes by for this no more, and need not look once more: something else is to happen
/// that makes it write what is there.
pub(crate) fn hand_on<T: Chore>(chore: &T) {
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

struct State<T> {
    items: Vec<T>,
    /// The I/O thread is at work on what it took, or was told.
    awake: bool,
    /// It will go on at some time, and before that only if it is told.
    waits: bool,
    /// It is to go on at once.
    hurried: bool,
    /// How often the list was taken.
    round: u32,
}

/// What has become of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Added {
    /// The I/O thread has nothing of this list to do: the caller tells it.
    pub(crate) wake: bool,
    /// The round in which it will come by.
    pub(crate) round: u32,
}

/// Chores on their way to the I/O thread.
pub(crate) struct Chores<T>(Mutex<State<T>>);

impl<T> Chores<T> {
    /// An empty list; the I/O thread is to be told of the first addition.
    pub(crate) fn new() -> Self {
        let state = State { items: Vec::new(), awake: false, waits: true, hurried: false, round: 0 };
        Chores(Mutex::new(state))
    }

    /// Any thread: adds what it has just marked.
    pub(crate) fn add(&self, item: T) -> Added {
        let mut state = lock(&self.0);
        state.items.push(item);
        Added { wake: !std::mem::replace(&mut state.awake, true), round: state.round }
    }

    /// Whether the I/O thread has nothing of it to do, or will find that there is nothing new.
    pub(crate) fn is_idle(&self) -> bool {
        !lock(&self.0).awake
    }

    /// How many wait for the next round.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).items.len()
    }

    /// Any thread: what is left is to be done now. True if the caller must tell the I/O thread.
    pub(crate) fn hurry(&self) -> bool {
        let mut state = lock(&self.0);
        let first = state.awake && !std::mem::replace(&mut state.hurried, true);
        first && state.waits
    }

    /// I/O thread: whether it was hurried since the last time.
    pub(crate) fn is_hurried(&self) -> bool {
        std::mem::take(&mut lock(&self.0).hurried)
    }

    /// I/O thread: goes on, and needs not be told of a hurry until it waits again.
    pub(crate) fn go_on(&self) {
        lock(&self.0).waits = false;
    }

    /// I/O thread: waits for a time before it goes on. False: not now, it was hurried.
    pub(crate) fn wait(&self) -> bool {
        let mut state = lock(&self.0);
        state.waits = !std::mem::take(&mut state.hurried);
        state.waits
    }

    /// I/O thread: adds all of it to `out`, which holds what it still has to do. False: that is
    /// nothing, and it is told of the next addition.
    pub(crate) fn take(&self, out: &mut Vec<T>) -> bool {
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
    fn a_chore_is_handed_over_once_until_it_is_let_go() {
        let chores = [(Mark::new(), Hint::new())];
        let (mark, hint) = &chores[0];
        for _ in 0..2 {
            assert!(mark.is_to_be_handed_over() && !mark.is_to_be_handed_over() && mark.is_set());
            assert!(!hint.take());
            let_go(&chores);
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
    fn a_wait_is_ended_once_and_not_begun_if_that_came_before() {
        let list = Chores::new();
        assert!(!list.hurry(), "there is nothing");
        list.add(0);
        assert!(list.wait() && !list.is_hurried());
        assert!(list.hurry() && !list.hurry(), "one wake-up is enough");
        assert!(list.is_hurried() && !list.is_hurried());
        list.go_on();
        assert!(!list.hurry(), "it is at work");
        assert!(!list.wait(), "it was hurried meanwhile");
        assert!(list.wait());
    }
}
