//! Waiting of a thread: it spins, yields its core, spins again, and finally sleeps. The rules are
//! in `tautline_timing::idle`. The account of the thread for the other rules is also here.

use std::cell::Cell;
use std::sync::OnceLock;

use tautline_io::{clock, thread};
use tautline_timing::idle::{FailedSpins, LONG_NS, PauseRule, Times, YieldLosses};
use tautline_timing::{SLICE, ThreadAccount, WAKE};

/// Number of looks between two yields. A look costs far less than a yield.
const CHECKS_PER_YIELD: u32 = 8;

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

fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| Times::new(spin_us(), thread::cpu_count()))
}

thread_local! {
    static ACCOUNT: ThreadAccount = const { ThreadAccount::new() };
    static FAILED_SPINS: Cell<FailedSpins> = const { Cell::new(FailedSpins::new()) };
}

/// Calls `f` with the account of this thread.
#[inline]
pub(crate) fn thread_account<R>(f: impl FnOnce(&ThreadAccount) -> R) -> R {
    ACCOUNT.with(f)
}

fn note(in_vain: bool) {
    let mut vain = FAILED_SPINS.get();
    vain.note(in_vain);
    FAILED_SPINS.set(vain);
}

static LOSSES: YieldLosses = YieldLosses::new();

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
                let starved = || thread::runnable().is_none_or(|n| n > times.cores);
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

/// A receiver's pauses between two looks.
#[derive(Debug)]
pub(crate) struct Pause(PauseRule);

impl Pause {
    /// Returns the pauses of a receiver that has not waited yet.
    pub(crate) fn new() -> Self {
        Pause(PauseRule::new())
    }

    /// Called when the receiver has found no message and is about to wait. `received` and `sent`
    /// are its total numbers of parts. Returns true after a pause; the receiver should then look
    /// again. `arrived` returns a count that changes with each arriving message.
    pub(crate) fn pause_before_wait(&mut self, received: u64, sent: u64, arrived: impl Fn() -> u64) -> bool {
        let now = clock::ticks();
        let ticks = self.0.begin(now, received, sent);
        if ticks == 0 {
            return false;
        }
        self.0.end(now, pause(now, ticks, arrived));
        true
    }
}

/// Pauses for `ticks` ticks from `start`. A long pause ends early if no messages arrive. Returns
/// its end.
fn pause(start: u64, ticks: u64, arrived: impl Fn() -> u64) -> u64 {
    let long = clock::nanos_to_ticks(LONG_NS);
    let (end, mut before) = (start + ticks, if ticks > long { arrived() } else { 0 });
    let mut now = start;
    loop {
        now = end.min(now + ticks.min(long));
        while clock::ticks() < now {
            std::hint::spin_loop();
        }
        // If no message arrived in this step, the sender is delayed or has finished.
        if now == end || std::mem::replace(&mut before, arrived()) == before {
            return now;
        }
        thread::yield_now_timed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length of the longest pause if each look finds `count` more messages.
    fn longest(count: u64) -> u64 {
        let (all, start) = (Cell::new(0), clock::ticks());
        let end = pause(start, clock::nanos_to_ticks(WAKE), || all.replace(all.get() + count));
        end - start
    }

    #[test]
    fn a_long_pause_goes_on_only_while_messages_come() {
        assert_eq!(longest(1), clock::nanos_to_ticks(WAKE));
        assert_eq!(longest(0), clock::nanos_to_ticks(LONG_NS));
    }
}
