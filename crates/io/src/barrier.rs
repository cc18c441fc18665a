//! An asymmetric store-load fence. Two sides each store a private flag and then read the flag of
//! the other side. At least one side must see the other's store. The side that runs millions of
//! times a second calls [`light`] between its store and its load. The side that is about to sleep
//! calls [`heavy`], which carries the cost of both.
//!
//! If the kernel can run a barrier on all cores that execute this process, `light` costs no
//! instruction at run time. Otherwise both are full fences. `light` is also a full fence until the
//! first `heavy` or [`prepare`] has found out which case applies.

#[cfg_attr(linux_kernel, path = "barrier/membarrier.rs")]
#[cfg_attr(not(linux_kernel), path = "barrier/fence.rs")]
mod os;

pub use os::{heavy, light, prepare};

#[cfg(test)]
mod tests {
    use std::sync::atomic::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed},
    };

    use super::*;

    const ROUNDS: u32 = 20_000;

    /// State that one side writes. It fills a whole cache line, so that the store takes time.
    #[derive(Default)]
    #[repr(align(128))]
    struct Side {
        flag: AtomicU32,
        saw: AtomicU32,
    }

    impl Side {
        /// Runs one round of one side: store, fence, load.
        fn cross(&self, other: &Side, round: u32, fence: fn()) {
            self.flag.store(round, Relaxed);
            fence();
            self.saw.store(other.flag.load(Relaxed), Relaxed);
        }
    }

    /// Waits until both sides have called this equally often. Spins, so that both sides continue
    /// together.
    fn meet(arrivals: &AtomicU32, time: u32) {
        arrivals.fetch_add(1, AcqRel);
        let mut tries = 0_u32;
        while arrivals.load(Acquire) < 2 * time {
            tries += 1;
            if tries.is_multiple_of(1000) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// Store buffering: without fences, both sides miss the other's store in some round.
    #[test]
    fn one_side_always_sees_the_other() {
        prepare();
        let (frequent, rare) = (Side::default(), Side::default());
        let arrivals = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    meet(&arrivals, 2 * round - 1);
                    frequent.cross(&rare, round, light);
                    meet(&arrivals, 2 * round);
                }
            });
            let mut missed = 0;
            for round in 1..=ROUNDS {
                meet(&arrivals, 2 * round - 1);
                rare.cross(&frequent, round, heavy);
                meet(&arrivals, 2 * round);
                // The frequent side waits at the first meeting of the next round.
                missed += u32::from(frequent.saw.load(Relaxed) != round && rare.saw.load(Relaxed) != round);
            }
            assert_eq!(missed, 0);
        });
    }
}
