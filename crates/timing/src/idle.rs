//! Waiting of a thread: it spins, yields its core, spins again, and finally sleeps.
//!
//! *Spinning may cost as much as sleeping.* To fall asleep and be woken takes about 20 µs
//! ([`WAKE`]), so a thread first spins for this time. The wait then costs at most twice as much as
//! the better of the two choices (the ski rental problem). `TAUT_SPIN_US` sets the time; 0 means:
//! sleep at once. The rule applies to all waits: blocking calls, polls and tasks that wait for
//! messages, and inproc senders that wait for their peer. (A sender that waits for the kernel
//! sleeps at once.)
//!
//! Two recent observations decide whether a thread spins:
//!
//! - Sleeps of the thread in a row that spinning would not have avoided ([`FailedSpins`]). After a
//!   few of them the thread sleeps at once, until a wait ends sooner. So an idle socket costs no
//!   CPU time.
//! - Long yields of the process ([`YieldLosses`]): another thread needs the core. If the system has
//!   fewer cores than runnable threads, the process may lose a share of its time this way.
//!   (Otherwise the other thread is probably our peer. The scheduler moves it to a free core soon,
//!   as long as we stay runnable.)
//!
//! Inputs are times in clock ticks. The engine reads the clock, looks and yields.

use super::{RARE_INTERVAL, WAKE};
use crate::clock::nanos_to_ticks;
use crate::rules::{Rule, is_disabled};
use tautline_mem::sync::atomic::AtomicU64;
use tautline_mem::sync::atomic::Ordering::Relaxed;

/// After this many unsuccessful spins in a row, the next one is expected to fail.
/// `MAX_FAILED_SPINS` limits the count.
const FAILED_SPINS_LIMIT: u32 = 4;
const MAX_FAILED_SPINS: u32 = 4 * FAILED_SPINS_LIMIT;

/// A sleep that ended within this multiple of a spin could have been avoided by spinning. The
/// product exceeds the time of a wake-up on a busy machine.
const AVOIDABLE_SPINS: u64 = 10;
/// If the debt of lost time exceeds this, in nanoseconds, the loss is high.
const HIGH_LOSS_NS: u64 = 150_000;
/// Longest part of one yield that counts as lost time, in nanoseconds.
const MAX_LOSS_NS: u64 = 4_000_000;

/// Times of the rule in clock ticks.
#[derive(Debug)]
pub struct Times {
    /// Duration of a spin.
    pub spin: u64,
    /// Spinning would have avoided a sleep that ended within this time: ten spins.
    pub avoidable_sleep: u64,
    /// A yield that takes longer has given the core to another thread.
    pub preempted_yield: u64,
    /// [`HIGH_LOSS_NS`].
    high_loss: u64,
    /// [`MAX_LOSS_NS`].
    max_loss: u64,
    /// Number of cores.
    pub cores: usize,
}

impl Times {
    /// Returns the times for threads that spin for `spin_us` microseconds, on `cores` cores.
    pub fn new(spin_us: u64, cores: usize) -> Times {
        let ticks = |micros: u64| nanos_to_ticks(micros * 1000);
        let pressed = nanos_to_ticks(WAKE / 4);
        Times {
            spin: ticks(spin_us),
            avoidable_sleep: ticks(spin_us * AVOIDABLE_SPINS).max(pressed),
            preempted_yield: pressed,
            high_loss: nanos_to_ticks(HIGH_LOSS_NS),
            max_loss: nanos_to_ticks(MAX_LOSS_NS),
            cores,
        }
    }
}

/// Number of waits of a thread that spinning did not shorten. Halved by each wait that it shortened
/// or would have shortened.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailedSpins(u32);

impl FailedSpins {
    /// Returns the state of a thread that has not waited yet.
    pub const fn new() -> FailedSpins {
        FailedSpins(0)
    }

    /// Notes a wait. `in_vain` is true if spinning did not shorten it.
    #[inline]
    pub fn note(&mut self, in_vain: bool) {
        self.0 = if in_vain { (self.0 + 1).min(MAX_FAILED_SPINS) } else { self.0 / 2 };
    }

    /// True if the next spin is expected to fail.
    #[inline]
    pub fn expects_to_sleep(self) -> bool {
        self.0 >= FAILED_SPINS_LIMIT && !is_disabled(Rule::Spins)
    }
}

/// Time that the threads of the process lose in yields.
#[derive(Debug)]
pub struct YieldLosses {
    /// Tick at which the debt is paid off. Each passing tick pays its share (the generic cell rate
    /// algorithm).
    paid: AtomicU64, // Relaxed: number: a rule of thumb that orders nothing.
    /// No thread spins before this tick.
    no_spin_before: AtomicU64, // Relaxed: number, as `paid`.
}

impl YieldLosses {
    /// Returns the state of a process that has lost no time.
    pub const fn new() -> YieldLosses {
        YieldLosses { paid: AtomicU64::new(0), no_spin_before: AtomicU64::new(0) }
    }

    /// True if threads may spin at `now`.
    #[inline]
    pub fn allow(&self, now: u64) -> bool {
        now >= self.no_spin_before.load(Relaxed)
    }

    /// Notes a yield of `away` ticks that ended at `now`. If the loss is high, calls `starved`,
    /// which returns true if there may be more runnable threads than cores.
    pub fn add(&self, now: u64, away: u64, times: &Times, starved: impl FnOnce() -> bool) {
        let due =
            self.paid.load(Relaxed).saturating_sub(now) + away.min(times.max_loss) * u64::from(RARE_INTERVAL);
        let is_much = due > times.high_loss * u64::from(RARE_INTERVAL);
        self.paid.store(if is_much { now } else { now + due }, Relaxed);
        if is_much && !is_disabled(Rule::Spins) && starved() {
            self.no_spin_before.store(now + due, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
