//! Which thread reads a socket's connections: one word, passed between the owner and the I/O
//! thread.
//!
//! The owner *keeps* the baton when `recv` returns, so that ping-pong and streaming pay for no
//! registration and no wake-up of the I/O thread. A coarse tick lets the I/O thread take it when
//! the owner stays away, so that read-ahead, PING, subscriptions and lost connections are dealt
//! with nevertheless. Only the holder (state `IO`, `IO_WANTED` or `OWNER`) reads.
//!
//! ```text
//! ARMED      no thread reads; the registration in the I/O thread's reactor is live
//! IO         the I/O thread reads
//! IO_WANTED  the same, and the owner waits for its wake-up
//! OWNER      the owner reads, or sleeps in a wait
//! KEPT       the owner is elsewhere; not registered
//! GLANCE     the owner reads what is there just now
//! MISSED     the same, and the registration has fired meanwhile
//! ```
//!
//! A program that waits on ZMQ_FD looks in passing, around every message, while the I/O thread
//! listens: such a *glance* leaves the registration alone, unless it fires in the middle.
//!
//! The order of each pair of steps below is needed for no wake-up to be lost; the loom model in
//! `baton/tests.rs` runs this very code: arm before `ARMED`, the timer off before `tick_on` is
//! cleared, a look for `KEPT` after that, a look at the inbound queue after the baton was taken
//! (the caller's part), and the fence in `release`.

use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, fence};

const ARMED: u32 = 0;
const IO: u32 = 1;
const IO_WANTED: u32 = 2;
const OWNER: u32 = 3;
const KEPT: u32 = 4;
const GLANCE: u32 = 5;
const MISSED: u32 = 6;

/// What the baton needs from around it.
pub(crate) trait Surroundings {
    /// Makes the I/O thread hear, once, that a connection has something to read.
    fn arm(&self);
    /// Ends that.
    fn disarm(&self);
    /// Starts the I/O thread's periodic tick.
    fn start_tick(&self);
    /// Wakes the owner out of `await_wake`.
    fn wake_owner(&self);
    /// Blocks the owner until `wake_owner`; may return early.
    fn await_wake(&self);
}

/// Answer of [`Baton::io_tick`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// The I/O thread has taken the baton: it must read, then call `io_leave`.
    Taken,
    /// The owner has been reading since the last tick: look again at the next.
    Live,
    /// Nothing to do here.
    Idle,
}

/// The word, and how often the owner has taken it.
#[derive(Debug)]
pub(crate) struct Baton {
    // Relaxed: look, for the loads and for exchanges that fail: the exchange that succeeds decides,
    // and has the order.
    word: AtomicU32,
    // Relaxed: own, the owner alone writes it; to the tick it is a number.
    epoch: AtomicU32,
}

impl Baton {
    /// A baton that is not held; the caller arms the registration.
    pub(crate) fn armed() -> Self {
        Baton { word: AtomicU32::new(ARMED), epoch: AtomicU32::new(0) }
    }

    /// The owner takes the baton. Afterwards it must look at its inbound queues again before it
    /// sleeps: the I/O thread may have filled them up to this moment.
    #[inline]
    pub(crate) fn acquire(&self, around: &impl Surroundings) {
        self.epoch.store(self.epoch.load(Relaxed).wrapping_add(1), Relaxed);
        if self.word.compare_exchange(KEPT, OWNER, Acquire, Relaxed).is_err() {
            self.acquire_slow(around);
        }
    }

    #[cold]
    fn acquire_slow(&self, around: &impl Surroundings) {
        let mut patience = 200;
        loop {
            match self.word.load(Relaxed) {
                KEPT if self.word.compare_exchange(KEPT, OWNER, Acquire, Relaxed).is_ok() => return,
                ARMED if self.word.compare_exchange(ARMED, OWNER, AcqRel, Relaxed).is_ok() => {
                    around.disarm();
                    return;
                }
                IO if patience > 0 && !cfg!(loom) => {
                    patience -= 1;
                    std::hint::spin_loop();
                }
                IO if self.word.compare_exchange(IO, IO_WANTED, AcqRel, Relaxed).is_ok() => {
                    // Pairs with the Release in `hand_over`: what the I/O thread did to the queues
                    // is visible here.
                    while self.word.load(Acquire) != OWNER {
                        around.await_wake();
                    }
                    return;
                }
                OWNER => return,
                _ => {
                    #[cfg(loom)]
                    loom::thread::yield_now();
                }
            }
        }
    }

    /// The owner goes away and keeps the baton; the tick watches over it.
    #[inline]
    pub(crate) fn release(&self, tick_on: &AtomicBool, around: &impl Surroundings) {
        // Release pairs with the Acquire of the thread that takes the baton next.
        self.word.store(KEPT, Release);
        // Against the tick's `tick_on = false; fence; look for KEPT`: one of the two sees the
        // other's store.
        fence(SeqCst);
        // Relaxed: fence; the swap decides.
        if !tick_on.load(Relaxed) && !tick_on.swap(true, SeqCst) {
            around.start_tick();
        }
    }

    /// The owner goes away and lets the I/O thread listen at once: for owners that wait on ZMQ_FD.
    pub(crate) fn release_armed(&self, around: &impl Surroundings) {
        self.word.store(ARMED, Release);
        // After the store: an event before it would be taken for stale, and the registration is
        // one-shot.
        around.arm();
    }

    /// Owner, for which the I/O thread listens: it may read what is there, if no thread reads just
    /// now, and then says `end_glance`.
    pub(crate) fn glance(&self) -> bool {
        self.word.compare_exchange(ARMED, GLANCE, Acquire, Relaxed).is_ok()
    }

    /// Owner: has read.
    pub(crate) fn end_glance(&self, around: &impl Surroundings) {
        // Release pairs with the Acquire of the thread that reads next.
        if self.word.compare_exchange(GLANCE, ARMED, Release, Relaxed).is_err() {
            self.release_armed(around);
        }
    }

    /// I/O thread: the registration has fired. False: stale, another thread reads.
    pub(crate) fn io_event(&self) -> bool {
        loop {
            if self.word.compare_exchange(ARMED, IO, AcqRel, Relaxed).is_ok() {
                return true;
            }
            // An owner that only glances must make the registration live again. It may just have
            // ended its glance: then once more.
            match self.word.compare_exchange(GLANCE, MISSED, AcqRel, Relaxed) {
                Err(ARMED) => {}
                _ => return false,
            }
        }
    }

    /// I/O thread: the owner wants the baton; stop reading soon.
    pub(crate) fn io_wanted(&self) -> bool {
        self.word.load(Relaxed) == IO_WANTED
    }

    /// Whether the I/O thread holds the baton.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn io_reads(&self) -> bool {
        matches!(self.word.load(Relaxed), IO | IO_WANTED)
    }

    /// I/O thread: done reading. Goes back to listening, or hands over to the waiting owner.
    pub(crate) fn io_leave(&self, around: &impl Surroundings) {
        if self.word.load(Relaxed) == IO {
            around.arm();
            // Release pairs with the owner's Acquire in `acquire_slow`.
            if self.word.compare_exchange(IO, ARMED, AcqRel, Relaxed).is_ok() {
                return;
            }
            around.disarm();
        }
        self.word.store(OWNER, Release);
        around.wake_owner();
    }

    /// I/O thread, once a tick: takes the baton when the owner has not come back since the tick
    /// before (`seen` is the caller's memory of the epoch).
    pub(crate) fn io_tick(&self, seen: &mut u32) -> Tick {
        let epoch = self.epoch.load(Relaxed);
        let word = self.word.load(Acquire);
        if word != KEPT {
            let live = word == OWNER && epoch != *seen;
            *seen = epoch;
            return if live { Tick::Live } else { Tick::Idle };
        }
        if epoch != *seen {
            *seen = epoch;
            return Tick::Live;
        }
        if self.word.compare_exchange(KEPT, IO, AcqRel, Relaxed).is_ok() { Tick::Taken } else { Tick::Live }
    }

    /// I/O thread, after it has switched its tick off and cleared `tick_on`: is there an owner that
    /// the tick must watch?
    pub(crate) fn kept(&self) -> bool {
        self.word.load(SeqCst) == KEPT
    }
}

/// I/O thread: ends the periodic tick unless a baton is kept. The timer must already be off.
/// Returns true if it must go on.
pub(crate) fn end_tick(tick_on: &AtomicBool, mut any_kept: impl FnMut() -> bool) -> bool {
    tick_on.store(false, SeqCst);
    // Pairs with the fence in `release`.
    fence(SeqCst);
    any_kept() && !tick_on.swap(true, SeqCst)
}

#[cfg(all(test, loom))]
mod tests;
