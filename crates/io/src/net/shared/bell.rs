//! Requests for a bell before a sleep, and the test before ringing it.
//!
//! A thread that must wait raises a flag and checks its condition once more. The thread that
//! fulfils the condition reads the flag afterwards, clears it and rings. At least one of the two
//! sees the other's store, so that neither sleeps although its condition is fulfilled:
//!
//! ```text
//! reader:  asleep = 1;  [fence]  tail?  -> sleep         writer:  blocked = 1;  [fence]  head?  -> sleep
//! writer:  tail;        [fence]  asleep?  -> ring        reader:  head;         [fence]  blocked?  -> ring
//! ```

use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

#[cfg(not(all(test, loom)))]
use super::atomic::fence;
#[cfg(all(test, loom))]
use loom::sync::atomic::fence;

/// A word that both ends write to. It is 1 while a bell is requested.
pub(super) trait Flag {
    fn load(&self) -> u32;
    fn raise(&self);
    /// Clears the flag and returns its old value.
    fn clear(&self) -> u32;
}

/// Implements the trait for the standard library's atomic type, and for that of the model.
macro_rules! flag {
    ($atomic:ty) => {
        impl Flag for $atomic {
            fn load(&self) -> u32 {
                // Relaxed: fence, of `request` and `take_request`.
                Self::load(self, Relaxed)
            }

            fn raise(&self) {
                self.store(1, Relaxed); // Relaxed: fence, as above.
            }

            fn clear(&self) -> u32 {
                self.swap(0, AcqRel)
            }
        }
    };
}

flag!(super::atomic::AtomicU32);

/// Requests a bell before a sleep. The caller then checks its condition once more.
pub(super) fn request(flag: &impl Flag) {
    flag.raise();
    fence(SeqCst);
}

/// Returns true if the other end must be rung. Called after fulfilling a condition that the other
/// end may wait for. `enough` tells whether the condition is fulfilled sufficiently. Returns true
/// once per request.
pub(super) fn take_request(flag: &impl Flag, enough: impl FnOnce() -> bool) -> bool {
    fence(SeqCst);
    flag.load() != 0 && enough() && flag.clear() != 0
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::{Acquire, Release};

    flag!(AtomicU32);

    #[derive(Default)]
    struct Shared {
        asleep: AtomicU32,
        tail: AtomicU32,
        bells: AtomicU32,
    }

    #[test]
    fn loom_no_side_sleeps_while_its_condition_holds() {
        loom::model(|| {
            let shared = Arc::new(Shared::default());
            let writer = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    for n in 1..=2 {
                        shared.tail.store(n, Release);
                        if take_request(&shared.asleep, || true) {
                            shared.bells.fetch_add(1, AcqRel);
                        }
                    }
                })
            };
            request(&shared.asleep);
            let seen = shared.tail.load(Acquire);
            writer.join().unwrap();
            let bells = shared.bells.load(Acquire);
            assert!(seen > 0 || bells > 0, "asleep for ever");
            assert!(bells <= 1, "one bell for each time that it was asked for");
        });
    }
}
