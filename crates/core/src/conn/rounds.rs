//! Rounds that the I/O thread makes while an owner publishes: when they begin, and when they end
//! (`herd` is what they are for).
//!
//! ```text
//! owner:       publish;   under way?  [light barrier; active?]  -> active = true, start a round
//! I/O thread:  round ... nothing new:  active = false  [heavy barrier]
//!              anything new?  -> active = true, another round
//! ```

use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::{barrier_heavy, barrier_light};

/// Whether rounds are made.
pub(crate) struct Rounds {
    // Relaxed: fence, by `under_way` and `round`.
    active: AtomicBool,
}

impl Rounds {
    /// None are made yet.
    pub(crate) fn new() -> Self {
        Rounds { active: AtomicBool::new(false) }
    }

    /// Owner, after publishing: whether a round that is still to come will see what was published.
    /// If not, see [`Rounds::start`]. One load.
    #[inline]
    pub(crate) fn under_way(&self) -> bool {
        // Store (what was published), then load: pairs with the heavy barrier in `round`.
        barrier_light();
        self.active.load(Relaxed)
    }

    /// Owner: true if the I/O thread must be told to begin.
    pub(crate) fn start(&self) -> bool {
        !self.active.swap(true, AcqRel)
    }

    /// I/O thread: one round, which writes what there is; `write` says whether it must come back
    /// for some of it, `length` how much was published. True if there must be another round.
    pub(crate) fn round(&self, length: impl Fn() -> u64, write: impl FnOnce() -> bool) -> bool {
        let before = length();
        if write() || length() != before {
            return true;
        }
        // A swap, not a store: loom lets the swaps of both sides in `start` pass over a store
        // between them.
        self.active.swap(false, AcqRel);
        // Store, then load: pairs with the light barrier in `under_way`.
        barrier_heavy();
        length() != before && self.start()
    }
}

/// Loom model: an owner that publishes, an I/O thread that sleeps until it is told to begin.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicU64;
    use crate::sync::atomic::Ordering::{Acquire, Release};
    use crate::sync::{Arc, Condvar, Mutex};

    struct Model {
        rounds: Rounds,
        tail: AtomicU64,
        written: AtomicU64,
        /// Rounds that were asked for: never two at once.
        asked: Mutex<u32>,
        wake: Condvar,
        /// The lock of the connection's pump.
        pump: Mutex<()>,
    }

    impl Model {
        fn publish(&self, message: u64) {
            self.tail.store(message, Release);
            if !self.rounds.under_way() && self.rounds.start() {
                let mut asked = self.asked.lock().unwrap();
                *asked += 1;
                assert_eq!(*asked, 1, "rounds are started while some are made");
                self.wake.notify_one();
            }
        }

        fn io_thread(&self, last: u64) {
            loop {
                let mut asked = self.asked.lock().unwrap();
                // A message that no round comes by for is a deadlock here.
                while *asked == 0 {
                    asked = self.wake.wait(asked).unwrap();
                }
                *asked -= 1;
                drop(asked);
                while self.rounds.round(|| self.tail.load(Acquire), || self.write()) {
                    loom::thread::yield_now();
                }
                if self.written.load(Relaxed) == last {
                    return;
                }
            }
        }

        fn write(&self) -> bool {
            match self.pump.try_lock() {
                Ok(_held) => {
                    self.written.store(self.tail.load(Acquire), Relaxed);
                    false
                }
                Err(_) => true,
            }
        }
    }

    fn check(messages: u64, owner_pumps: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Arc::new(Model {
                rounds: Rounds::new(),
                tail: AtomicU64::new(0),
                written: AtomicU64::new(0),
                asked: Mutex::new(0),
                wake: Condvar::new(),
                pump: Mutex::new(()),
            });
            let owner = model.clone();
            let thread = loom::thread::spawn(move || {
                for message in 1..=messages {
                    owner.publish(message);
                    if owner_pumps && message == 1 {
                        // The owner looks after a connection by itself, and writes nothing.
                        drop(owner.pump.lock().unwrap());
                    }
                }
            });
            model.io_thread(messages);
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_every_message_is_met_by_a_round() {
        check(3, false);
    }

    #[test]
    fn loom_a_round_that_misses_a_connection_comes_back() {
        check(2, true);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn rounds_go_on_until_one_finds_nothing_new() {
        let rounds = Rounds::new();
        let length = Cell::new(1);
        assert!(!rounds.under_way());
        assert!(rounds.start() && !rounds.start());
        let grows = || {
            length.set(length.get() + 1);
            false
        };
        assert!(rounds.round(|| length.get(), grows));
        assert!(rounds.round(|| length.get(), || true));
        assert!(rounds.under_way());
        assert!(!rounds.round(|| length.get(), || false));
        assert!(!rounds.under_way());
        assert!(rounds.start());
    }
}
