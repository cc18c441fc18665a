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
//! A receiver from inproc peers also pauses between two looks ([`Pause`]). A receiver that is
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
//! Inputs are times in clock ticks. [`Spin`] reads the clock for its callers.

use super::{RARE_INTERVAL, SLICE, WAKE};
use crate::ablation::{Rule, is_disabled};
use std::cell::Cell;
use std::sync::OnceLock;

use tautline_io::{clock, thread};
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;

/// Number of looks between two yields.
const CHECKS_PER_YIELD: u32 = 8;
/// After this many unsuccessful spins in a row, the next one is expected to fail.
/// `MAX_FAILED_SPINS` limits the count.
const FAILED_SPINS_LIMIT: u32 = 4;
const MAX_FAILED_SPINS: u32 = 4 * FAILED_SPINS_LIMIT;

/// Returns the time in microseconds that a thread spins before it sleeps: `TAUT_SPIN_US`, or about
/// the cost of a wake-up.
pub(crate) fn spin_us() -> u64 {
    static MICROS: OnceLock<u64> = OnceLock::new();
    *MICROS.get_or_init(|| {
        let asked = tautline_io::env::var_os("TAUT_SPIN_US")
            .and_then(|text| text.to_str()?.trim().parse::<u64>().ok());
        // On one core, the peer cannot run while we spin.
        if thread::cpu_count() < 2 { 0 } else { asked.unwrap_or(WAKE / 1000).min(SLICE / 1000) }
    })
}

/// Times of the rule in clock ticks.
struct Times {
    /// Duration of a spin.
    spin: u64,
    /// Spinning would have avoided a sleep that ended within this time. The value exceeds the time
    /// of a wake-up on a busy machine.
    avoidable_sleep: u64,
    /// A yield that takes longer has given the core to another thread.
    preempted_yield: u64,
    /// If the debt of lost time exceeds this, the loss is high. A single yield of this length has
    /// given the core to a busy thread; a shorter yield has probably given it to the peer that we
    /// wait for.
    high_loss: u64,
    most: u64,
    cores: usize,
}

fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = |micros: u64| clock::nanos_to_ticks(micros * 1000);
        let pressed = clock::nanos_to_ticks(WAKE / 4);
        Times {
            spin: ticks(spin_us()),
            avoidable_sleep: ticks(spin_us() * 10).max(pressed),
            preempted_yield: pressed,
            high_loss: ticks(150),
            most: ticks(4_000),
            cores: thread::cpu_count(),
        }
    })
}

/// Number of waits of a thread that spinning did not shorten. Halved by each wait that it shortened
/// or would have shortened.
#[derive(Debug, Clone, Copy, Default)]
struct FailedSpins(u32);

impl FailedSpins {
    fn note(&mut self, in_vain: bool) {
        self.0 = if in_vain { (self.0 + 1).min(MAX_FAILED_SPINS) } else { self.0 / 2 };
    }

    fn expects_to_sleep(self) -> bool {
        self.0 >= FAILED_SPINS_LIMIT && !is_disabled(Rule::Vain)
    }
}

thread_local! {
    static FAILED_SPINS: Cell<FailedSpins> = const { Cell::new(FailedSpins(0)) };
}

fn note(in_vain: bool) {
    let mut vain = FAILED_SPINS.get();
    vain.note(in_vain);
    FAILED_SPINS.set(vain);
}

/// Time that the threads of the process lose in yields.
struct YieldLosses {
    /// Tick at which the debt is paid off. Each passing tick pays its share (the generic cell rate
    /// algorithm).
    paid: AtomicU64, // Relaxed: number: a rule of thumb that orders nothing.
    /// No thread spins before this tick.
    no_spin_before: AtomicU64, // Relaxed: number, as `paid`.
}

static LOSSES: YieldLosses = YieldLosses { paid: AtomicU64::new(0), no_spin_before: AtomicU64::new(0) };

impl YieldLosses {
    /// True if threads may spin at `now`.
    fn allow(&self, now: u64) -> bool {
        now >= self.no_spin_before.load(Relaxed)
    }

    /// Notes a yield of `away` ticks that ended at `now`. `starved` returns true if there are more
    /// runnable threads than cores.
    fn add(&self, now: u64, away: u64, times: &Times, starved: impl FnOnce() -> bool) {
        let due =
            self.paid.load(Relaxed).saturating_sub(now) + away.min(times.most) * u64::from(RARE_INTERVAL);
        let is_much = due > times.high_loss * u64::from(RARE_INTERVAL);
        self.paid.store(if is_much { now } else { now + due }, Relaxed);
        if is_much && !is_disabled(Rule::Losses) && (away > times.high_loss || starved()) {
            self.no_spin_before.store(now + due, Relaxed);
        }
    }
}

/// True if the next wait probably ends in a sleep, so that a spin would be useless.
pub(crate) fn expects_to_sleep() -> bool {
    FAILED_SPINS.get().expects_to_sleep()
}

/// Notes that a wait succeeded at once.
pub(crate) fn record_success() {
    note(false);
}

/// Notes that a wait ended in a sleep, after `ticks` ticks.
pub(crate) fn record_sleep(ticks: u64) {
    note(ticks >= times().avoidable_sleep);
}

/// Calls `look` until it returns true, for as long as the rule allows. The argument of `look` is
/// the maximum number of looks. Returns false when it is time to sleep.
///
/// # Errors
/// Returns the error of `look`.
pub(crate) fn spin<E>(mut look: impl FnMut(u32) -> Result<bool, E>) -> Result<bool, E> {
    let Some(spin) = Spin::begin() else { return Ok(false) };
    loop {
        match spin.step(&mut look)? {
            SpinOutcome::Continue => {}
            turn => return Ok(turn == SpinOutcome::Ready),
        }
    }
}

/// A spin in turns, for callers that cannot block until it ends.
#[derive(Debug)]
pub(crate) struct Spin {
    start: u64,
}

/// Result of one turn of a spin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpinOutcome {
    /// The look succeeded.
    Ready,
    /// Spin again.
    Continue,
    /// Time to sleep.
    Sleep,
}

impl Spin {
    /// Begins a spin now, if the rule allows one.
    pub(crate) fn begin() -> Option<Spin> {
        let start = clock::ticks();
        let may_look = times().spin > 0 && !expects_to_sleep() && LOSSES.allow(start);
        may_look.then_some(Spin { start })
    }

    /// Returns the tick at which the spin began.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Looks a few times and yields the core once. The spin has ended if the result is not
    /// [`SpinOutcome::Continue`]. The argument of `look` is the maximum number of looks.
    ///
    /// # Errors
    /// Returns the error of `look`.
    pub(crate) fn step<E>(&self, look: &mut impl FnMut(u32) -> Result<bool, E>) -> Result<SpinOutcome, E> {
        let times = times();
        let mut is_there = look(CHECKS_PER_YIELD)?;
        let mut is_over = is_there;
        if !is_there {
            let away = thread::yield_now_timed();
            let now = clock::ticks();
            is_over = now.wrapping_sub(self.start) >= times.spin;
            if away > times.preempted_yield {
                is_there = look(1)?;
                is_over = true;
                let starved = || thread::runnable().is_some_and(|n| n > times.cores);
                LOSSES.add(now, away, times, starved);
            }
        }
        if is_there {
            record_success();
        }
        Ok(match (is_there, is_over) {
            (true, _) => SpinOutcome::Ready,
            (false, true) => SpinOutcome::Sleep,
            (false, false) => SpinOutcome::Continue,
        })
    }
}

/// `FIRST_NS` is the first pause, `LONG_NS` the longest one. If messages come as fast as possible,
/// the limit is [`WAKE`], and the receiver checks every [`LONG_NS`] whether more messages arrive.
const FIRST_NS: u64 = 200;
const LONG_NS: u64 = 2500;
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
pub(crate) struct Pause {
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

impl Pause {
    pub(crate) fn new() -> Self {
        Pause { ticks: 0, last: 0, received: 0, sent: 0, streak: 0, needed: STREAK }
    }

    /// Called when the receiver has found no message and is about to wait. `received` and `sent`
    /// are its total numbers of parts. Returns true after a pause; the receiver should then look
    /// again. `arrived` returns a count that changes with each arriving message.
    pub(crate) fn pause_before_wait(&mut self, received: u64, sent: u64, arrived: impl Fn() -> u64) -> bool {
        let now = clock::ticks();
        self.ticks = self.next(now, received, sent);
        self.last = now;
        if self.ticks == 0 {
            return false;
        }
        let long = self.ticks > clock::nanos_to_ticks(LONG_NS);
        let step = if long { clock::nanos_to_ticks(LONG_NS) } else { self.ticks };
        let (end, mut before) = (now + self.ticks, if long { arrived() } else { 0 });
        loop {
            self.last = end.min(self.last + step);
            while clock::ticks() < self.last {
                std::hint::spin_loop();
            }
            // If no message arrived in this step, the sender is delayed or has finished.
            if self.last == end || std::mem::replace(&mut before, arrived()) == before {
                self.ticks = self.last - now;
                return true;
            }
            thread::yield_now_timed();
        }
    }

    /// Returns the length of the pause at `now`, or 0.
    fn next(&mut self, now: u64, received: u64, sent: u64) -> u64 {
        let batch = received.wrapping_sub(std::mem::replace(&mut self.received, received));
        let answered = std::mem::replace(&mut self.sent, sent) != sent;
        let stream = clock::nanos_to_ticks(STREAM_NS).saturating_mul(batch + 1);
        if batch == 0 || answered || now.wrapping_sub(self.last) >= stream {
            self.streak = 0;
            return 0;
        }
        if self.ticks > 0 {
            if batch >= WORTH {
                self.needed = STREAK;
                let dense = self.ticks <= clock::nanos_to_ticks(DENSE_NS).saturating_mul(batch);
                let most = if dense { WAKE } else { LONG_NS };
                return (self.ticks * 2).min(clock::nanos_to_ticks(most));
            }
            self.needed = (self.needed * 2).min(STREAK * RARE_INTERVAL);
            self.streak = 0;
            return 0;
        }
        self.streak += 1;
        if self.streak < self.needed { 0 } else { clock::nanos_to_ticks(FIRST_NS) }
    }
}

#[cfg(test)]
mod tests;
