//! The baton: one word that says which thread reads a socket's connections. The owner and the I/O
//! thread pass it to each other.
//!
//! The owner *keeps* the baton when `recv` returns. So ping-pong and streaming need no registration
//! and no wake-up of the I/O thread. If the owner stays away, a coarse tick lets the I/O thread
//! take the baton. Read-ahead, PING, subscriptions and lost connections are then still handled.
//! Only the holder (state `IO`, `IO_WANTED` or `OWNER`) reads.
//!
//! ```text
//! ARMED      no thread reads; the registration in the I/O thread's reactor is live
//! IO         the I/O thread reads
//! IO_WANTED  the I/O thread reads, and the owner waits for its wake-up
//! OWNER      the owner reads, or sleeps in a wait
//! KEPT       the owner is elsewhere; not registered
//! GLANCE     the owner reads the bytes that are there now
//! MISSED     like GLANCE, and the registration has fired since
//! ```
//!
//! A program that waits on ZMQ_FD looks briefly around every message while the I/O thread listens.
//! During such a *glance* the registration stays as it was, unless it fires.
//!
//! The order of each pair of steps below is needed so that no wake-up is lost. The loom model in
//! `baton/tests.rs` runs this very code:
//!
//! - Arm before `ARMED`.
//! - Switch the timer off before clearing `tick_on`, and look for `KEPT` after that.
//! - Look at the inbound queue after taking the baton (the caller's part).
//! - Keep the fences in `release` and `acquire_slow`.

use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, fence};

const ARMED: u32 = 0;
const IO: u32 = 1;
const IO_WANTED: u32 = 2;
const OWNER: u32 = 3;
const KEPT: u32 = 4;
const GLANCE: u32 = 5;
const MISSED: u32 = 6;

/// Operations that the baton needs from its environment.
pub trait Surroundings {
    /// Makes the reactor notify the I/O thread, once, when a connection has bytes to read.
    fn arm(&self);
    /// Cancels `arm`.
    fn disarm(&self);
    /// Starts the I/O thread's periodic tick.
    fn start_tick(&self);
    /// Adds the baton to those that the tick watches.
    fn join_tick(&self);
    /// Wakes the owner from `await_wake`.
    fn wake_owner(&self);
    /// Blocks the owner until `wake_owner`. May return early.
    fn await_wake(&self);
}

/// Result of [`Baton::io_tick`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    /// The I/O thread has taken the baton, and must read and then call `io_leave`.
    Taken,
    /// The owner has read since the last tick. The I/O thread checks again at the next tick.
    Live,
    /// The owner is present, or the I/O thread listens: the tick has no work for this socket.
    Idle,
}

/// The word, and the number of times that the owner has taken it.
#[derive(Debug)]
pub struct Baton {
    // Relaxed: look, for the loads and for exchanges that fail: the exchange that succeeds decides,
    // and it has the ordering.
    word: AtomicU32,
    // Relaxed: own, the owner alone writes it; for the tick it is a number.
    epoch: AtomicU32,
    /// The epoch at the last tick.
    // Relaxed: own, the I/O thread alone.
    seen: AtomicU32,
    /// True while the tick watches the baton. An owner that takes it from the I/O thread sets this.
    // Relaxed: fence.
    ticked: AtomicBool,
}

impl Baton {
    /// Returns a baton without a holder. The caller arms the registration.
    pub fn armed() -> Self {
        Baton {
            word: AtomicU32::new(ARMED),
            epoch: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            ticked: AtomicBool::new(false),
        }
    }

    /// Takes the baton for the owner. The owner must then look at its inbound queues again before
    /// it sleeps, because the I/O thread may have filled them until this moment.
    #[inline]
    pub fn acquire(&self, around: &impl Surroundings) {
        self.epoch.store(self.epoch.load(Relaxed).wrapping_add(1), Relaxed);
        if self.word.compare_exchange(KEPT, OWNER, Acquire, Relaxed).is_err() {
            self.acquire_slow(around);
        }
    }

    #[cold]
    fn acquire_slow(&self, around: &impl Surroundings) {
        self.take(around);
        // Against the tick's `ticked = false; fence; look at the word` in `leave_tick`.
        fence(SeqCst);
        if !self.ticked.load(Relaxed) && !self.ticked.swap(true, SeqCst) {
            around.join_tick();
        }
    }

    /// Takes the baton from the state in which it is.
    fn take(&self, around: &impl Surroundings) {
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
                    // Pairs with the Release in `io_leave`: the I/O thread's changes to the queues
                    // are visible here.
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

    /// Called when the owner leaves. The owner keeps the baton. If the owner stays away, the tick
    /// gives the baton to the I/O thread.
    #[inline]
    pub fn release(&self, tick_on: &AtomicBool, around: &impl Surroundings) {
        // Release pairs with the Acquire of the thread that takes the baton next.
        self.word.store(KEPT, Release);
        // Against the tick's `tick_on = false; fence; look for KEPT`: one of the two sides sees the
        // other's store.
        fence(SeqCst);
        // Relaxed: fence; the swap decides.
        if !tick_on.load(Relaxed) && !tick_on.swap(true, SeqCst) {
            around.start_tick();
        }
    }

    /// Called when the owner leaves, for owners that wait on ZMQ_FD. The I/O thread listens at
    /// once.
    #[inline]
    pub fn release_armed(&self, around: &impl Surroundings) {
        self.word.store(ARMED, Release);
        // After the store: an earlier event would be taken for stale, and the registration is
        // one-shot.
        around.arm();
    }

    /// Called by an owner for which the I/O thread listens. Returns true if no other thread is
    /// reading now. The owner may then read the available bytes, and must call `end_glance`
    /// afterwards.
    #[inline]
    pub fn glance(&self) -> bool {
        self.word.compare_exchange(ARMED, GLANCE, Acquire, Relaxed).is_ok()
    }

    /// Ends the owner's glance after it has read.
    #[inline]
    pub fn end_glance(&self, around: &impl Surroundings) {
        // Release pairs with the Acquire of the thread that reads next.
        if self.word.compare_exchange(GLANCE, ARMED, Release, Relaxed).is_err() {
            self.release_armed(around);
        }
    }

    /// Called by the I/O thread when the registration has fired. Returns false if the event is
    /// stale because another thread reads.
    #[inline]
    pub fn io_event(&self) -> bool {
        loop {
            if self.word.compare_exchange(ARMED, IO, AcqRel, Relaxed).is_ok() {
                return true;
            }
            // An owner that only glances must make the registration live again. If it has just
            // ended its glance, try once more.
            match self.word.compare_exchange(GLANCE, MISSED, AcqRel, Relaxed) {
                Err(ARMED) => {}
                _ => return false,
            }
        }
    }

    /// I/O thread: true if the owner wants the baton, so that the I/O thread should stop reading
    /// soon.
    #[inline]
    pub fn io_wanted(&self) -> bool {
        self.word.load(Relaxed) == IO_WANTED
    }

    /// True if the I/O thread holds the baton.
    pub fn io_reads(&self) -> bool {
        matches!(self.word.load(Relaxed), IO | IO_WANTED)
    }

    /// Ends the I/O thread's reading: it listens again, or hands the baton over to the waiting
    /// owner.
    pub fn io_leave(&self, around: &impl Surroundings) {
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

    /// Called by the I/O thread once a tick. Takes the baton if the owner has not returned since
    /// the tick before.
    pub fn io_tick(&self) -> Tick {
        let epoch = self.epoch.load(Relaxed);
        let seen = self.seen.load(Relaxed);
        self.seen.store(epoch, Relaxed);
        let word = self.word.load(Acquire);
        if word != KEPT {
            let live = word == OWNER && epoch != seen;
            return if live { Tick::Live } else { Tick::Idle };
        }
        if epoch != seen {
            return Tick::Live;
        }
        if self.word.compare_exchange(KEPT, IO, AcqRel, Relaxed).is_ok() { Tick::Taken } else { Tick::Live }
    }

    /// Called by the I/O thread in a tick, under the lock that `join_tick` takes. Returns true if
    /// the tick need not watch the baton until the next `join_tick`.
    pub fn leave_tick(&self) -> bool {
        if !self.is_resting() {
            return false;
        }
        self.ticked.store(false, SeqCst);
        // Pairs with the fence in `acquire_slow`.
        fence(SeqCst);
        // An owner that has taken the baton, and has seen the store, is about to join again.
        self.is_resting() || self.ticked.swap(true, SeqCst)
    }

    /// True if the I/O thread listens, and the owner reads for a glance at most.
    fn is_resting(&self) -> bool {
        matches!(self.word.load(Relaxed), ARMED | GLANCE | MISSED)
    }

    /// Called by the I/O thread after it has switched its tick off and cleared `tick_on`. Returns
    /// true if the tick must still watch an owner.
    #[inline]
    pub fn is_kept(&self) -> bool {
        self.word.load(SeqCst) == KEPT
    }
}

/// Ends the I/O thread's periodic tick unless a baton is kept. The timer must already be off.
/// Returns true if the tick must continue.
pub fn end_tick(tick_on: &AtomicBool, mut any_kept: impl FnMut() -> bool) -> bool {
    tick_on.store(false, SeqCst);
    // Pairs with the fence in `release`.
    fence(SeqCst);
    any_kept() && !tick_on.swap(true, SeqCst)
}

#[cfg(all(test, loom))]
mod tests;
