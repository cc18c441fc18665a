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
//! A receiver from inproc peers also pauses between two looks ([`PauseRule`]). A receiver that is
//! faster than its peer and looks all the time takes the cache line of the queue's counter from the
//! peer with each look, and gets one message for it. Both then run at the speed at which a cache
//! line travels. If the receiver stays away for a moment, it finds a batch and disturbs the peer
//! less.
//!
//! So the receiver pauses once messages keep coming at short intervals, and lengthens the pause as
//! long as that pays. If messages come one by one, it does not pause, because then latency matters.
//! If messages come as fast as the peer can send, it pauses even longer, but only while more
//! messages arrive.
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

/// Length of the first pause.
const FIRST_NS: u64 = 200;
/// Length of the longest pause. If messages come as fast as possible, the limit is [`WAKE`], and
/// the receiver checks every [`LONG_NS`] whether more messages arrive.
pub const LONG_NS: u64 = 2500;
/// A wait belongs to a stream if it follows the last wait within this time, multiplied by the
/// number of received messages plus one.
const STREAM_NS: u64 = 300;
/// If a pause takes at most this time per message that arrived in it, it may grow into a long
/// pause.
const DENSE_NS: u64 = 60;
/// Number of messages after a pause that make the pause worthwhile.
const WORTH: u64 = 3;
/// Number of waits in a stream before the first pause. Doubled after each useless pause, up to
/// [`RARE_INTERVAL`] times this value.
const STREAK: u32 = 4;

/// A receiver's record of its last waits.
#[derive(Debug)]
pub struct PauseRule {
    /// Length of the last pause in ticks. 0 if the receiver did not pause.
    ticks: u64,
    /// State at the start of the last wait: the time, and the number of parts received and sent.
    last: u64,
    received: u64,
    sent: u64,
    /// Number of waits in a stream so far, and the number that leads to a pause.
    streak: u32,
    needed: u32,
}

impl PauseRule {
    /// Returns the record of a receiver that has not waited yet.
    pub fn new() -> Self {
        PauseRule { ticks: 0, last: 0, received: 0, sent: 0, streak: 0, needed: STREAK }
    }

    /// Called at `now`, when the receiver has found no message and is about to wait. `received` and
    /// `sent` are its total numbers of parts. Returns the length of the pause, or 0.
    #[inline]
    pub fn begin(&mut self, now: u64, received: u64, sent: u64) -> u64 {
        self.ticks = self.next(now, received, sent);
        self.last = now;
        self.ticks
    }

    /// Notes that the pause that began at `start` ended at `end`.
    #[inline]
    pub fn end(&mut self, start: u64, end: u64) {
        self.ticks = end.wrapping_sub(start);
        self.last = end;
    }

    /// Returns the length of the pause at `now`, or 0.
    fn next(&mut self, now: u64, received: u64, sent: u64) -> u64 {
        let batch = received.wrapping_sub(std::mem::replace(&mut self.received, received));
        let answered = std::mem::replace(&mut self.sent, sent) != sent;
        let stream = nanos_to_ticks(STREAM_NS).saturating_mul(batch + 1);
        if batch == 0 || answered || now.wrapping_sub(self.last) >= stream {
            self.streak = 0;
            return 0;
        }
        if self.ticks > 0 {
            if batch >= WORTH {
                self.needed = STREAK;
                let dense = self.ticks <= nanos_to_ticks(DENSE_NS).saturating_mul(batch);
                let most = if dense { WAKE } else { LONG_NS };
                return (self.ticks * 2).min(nanos_to_ticks(most));
            }
            self.needed = (self.needed * 2).min(STREAK * RARE_INTERVAL);
            self.streak = 0;
            return 0;
        }
        self.streak += 1;
        if self.streak < self.needed { 0 } else { nanos_to_ticks(FIRST_NS) }
    }
}

#[cfg(test)]
mod tests;
