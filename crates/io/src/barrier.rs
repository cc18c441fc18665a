//! An asymmetric store-load fence. Two sides each store a flag of their own and then look at the other's;
//! at least one must see the other's store. The side that does so millions of times a second calls [`light`]
//! between its store and its load, the side that is about to sleep calls [`heavy`], and pays for both.
//!
//! Where the kernel can run a barrier on all cores that execute this process, `light` costs nothing at run
//! time; where it cannot, both are full fences. `light` also is a full fence until the first `heavy` or
//! [`prepare`] has found out which.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "barrier/membarrier.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "barrier/fence.rs")]
mod os;

/// The frequent side's fence.
#[inline]
pub fn light() {
    os::light();
}

/// The rare side's fence; a few microseconds.
pub fn heavy() {
    os::heavy();
}

/// Registers the process with the kernel, if nobody has yet. That can take milliseconds once there are
/// several threads, so it is better done before they start than by the first [`heavy`].
pub fn prepare() {
    os::prepare();
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    use super::*;

    /// Store buffering: without fences both sides can miss the other's store.
    #[test]
    fn one_side_always_sees_the_other() {
        const ROUNDS: u32 = 2_000;
        prepare();
        let (frequent, rare) = (AtomicU32::new(0), AtomicU32::new(0));
        let (frequent_missed, rare_missed) = (AtomicBool::new(false), AtomicBool::new(false));
        let meet = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    meet.wait();
                    frequent.store(round, Relaxed);
                    light();
                    frequent_missed.store(rare.load(Relaxed) != round, Relaxed);
                    meet.wait();
                }
            });
            for round in 1..=ROUNDS {
                meet.wait();
                rare.store(round, Relaxed);
                heavy();
                rare_missed.store(frequent.load(Relaxed) != round, Relaxed);
                meet.wait();
                // The frequent side waits at the next round's first meeting.
                assert!(!(frequent_missed.load(Relaxed) && rare_missed.load(Relaxed)), "round {round}");
            }
        });
    }
}
