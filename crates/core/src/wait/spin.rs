//! How long to spin before a sleep.
//!
//! A wake-up costs about 20 µs, so that is how long a wait looks again and again first. Every few
//! looks it yields the core and takes the time: a yield that takes long says that another thread
//! needs the core. If that happens a lot, and more threads of the system want to run than there are
//! cores, spinning is banned in the whole process for a while. (If there are enough cores, it is
//! the very peer that we wait for, and the system will soon give it another one, unless it were to
//! see us asleep.) Spins that fail make the next ones rarer, so a socket that is idle costs
//! nothing. `TAUT_SPIN_US` sets the time; 0 is never.

use crate::ablation::{Rule, without};
use std::cell::Cell;
use std::sync::OnceLock;

use crate::conn::patience_us;
use crate::error::Error;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use tautline_io::{clock, thread};

/// Looks between two yields.
const LOOKS: u32 = 8;
/// Most waits that go without a spin after spins that failed.
const MAX_SKIP: u32 = 63;
/// Spins won that halve the ban.
const FORGIVE: u32 = 64;
/// The part of its time that a thread may lose in yields in the long run: one part in this number.
const LOSS: u64 = 8;

/// Waits that end in a sleep weigh one each; from this number on the next one is expected to, and
/// no more are counted than `MOST_SLEEPS`.
const SLEEPS: u32 = 4;
const MOST_SLEEPS: u32 = 16;

/// The limits in clock ticks.
struct Limits {
    spin: u64,
    /// After a sleep that ended this soon the next wait may spin.
    near: u64,
    pressed: u64,
    busy: u64,
    ban_min: u64,
    ban_max: u64,
    guard: u64,
    cores: usize,
}

fn limits() -> &'static Limits {
    static LIMITS: OnceLock<Limits> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let cores = thread::cpu_count();
        let micros = patience_us();
        let ticks = |micros: u64| clock::nanos_to_ticks(micros * 1000);
        Limits {
            spin: ticks(micros),
            near: ticks(micros * 10),
            pressed: ticks(5),
            busy: ticks(150),
            ban_min: ticks(4_000),
            ban_max: ticks(256_000),
            guard: ticks(1_000),
            cores,
        }
    })
}

/// No spinning before this tick, anywhere in the process; 0: no ban.
// Relaxed: number: a rule of thumb that orders nothing.
static OFF_UNTIL: AtomicU64 = AtomicU64::new(0);
/// The length of the last ban.
// Relaxed: number, as `OFF_UNTIL`.
static BAN: AtomicU64 = AtomicU64::new(0);

/// How the spins of a thread have ended lately.
#[derive(Clone, Copy, Default)]
struct Luck {
    /// Waits still to go without a spin.
    skip: u32,
    /// What `skip` was set to last.
    back: u32,
    wins: u32,
    /// Ticks lost in yields, less a part of the time that has passed, and when that was reckoned.
    lost: u64,
    lost_at: u64,
}

impl Luck {
    /// `ticks` ticks were lost in a yield that ended at `now`. Whether it is more than `most` and a
    /// share of all time since then.
    fn lose(&mut self, now: u64, ticks: u64, most: u64) -> bool {
        let passed = now.saturating_sub(std::mem::replace(&mut self.lost_at, now));
        self.lost = self.lost.saturating_sub(passed / LOSS) + ticks;
        let much = self.lost > most;
        if much {
            self.lost = 0;
        }
        much
    }
}

thread_local! {
    static LUCK: Cell<Luck> = const { Cell::new(Luck { skip: 0, back: 0, wins: 0, lost: 0, lost_at: 0 }) };
}

thread_local! {
    /// How many of the last waits have ended in a sleep, halved with each that did not.
    static SLEPT: Cell<u32> = const { Cell::new(0) };
}

/// Whether a wait is likely to end in a sleep: then it is no use to look before.
pub(super) fn sleeps_as_a_rule() -> bool {
    SLEPT.get() >= SLEEPS && !without(Rule::Unseen)
}

/// A wait has found at once what it was for.
pub(super) fn found() {
    SLEPT.set(SLEPT.get() / 2);
}

/// A sleep that nothing was looked at before has lasted `ticks` ticks.
pub(super) fn slept_unseen(ticks: u64) {
    // In less time no thread goes to sleep and is woken: it was there before.
    if ticks < limits().pressed { found() } else { slept(ticks) }
}

/// Whether this wait may spin; the second value says that it does so on probation.
fn may_spin(now: u64, limits: &Limits) -> Option<bool> {
    let mut luck = LUCK.get();
    if limits.spin == 0 {
        return None;
    }
    if luck.skip > 0 {
        luck.skip -= 1;
        LUCK.set(luck);
        return None;
    }
    match OFF_UNTIL.load(Relaxed) {
        0 => Some(false),
        off if now >= off => {
            OFF_UNTIL.compare_exchange(off, now + limits.guard, Relaxed, Relaxed).is_ok().then_some(true)
        }
        _ => None,
    }
}

/// Looks until `look`, which is told how many times to look at most, says true, for as long as the
/// rule allows. False: time to sleep.
pub(super) fn spin(mut look: impl FnMut(u32) -> Result<bool, Error>) -> Result<bool, Error> {
    let Some(spin) = Spin::begin() else { return Ok(false) };
    loop {
        match spin.turn(&mut look)? {
            Turn::Again => {}
            turn => return Ok(turn == Turn::Found),
        }
    }
}

/// A spin in turns, for callers that cannot stay until it is over.
#[derive(Debug)]
pub(crate) struct Spin {
    start: u64,
    on_probation: bool,
}

/// What a turn of a spin has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is what was looked for.
    Found,
    /// Not yet.
    Again,
    /// Time to sleep.
    Over,
}

impl Spin {
    /// A spin that begins now, if the rule allows one.
    pub(crate) fn begin() -> Option<Spin> {
        let limits = limits();
        let start = clock::ticks();
        let on_probation = may_spin(start, limits)?;
        Some(Spin { start, on_probation })
    }

    /// The tick at which it began.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Looks a few times, and yields the core once. After anything but [`Turn::Again`] the spin is
    /// over. `look` is told how many times to look at most.
    pub(crate) fn turn(&self, look: &mut impl FnMut(u32) -> Result<bool, Error>) -> Result<Turn, Error> {
        let limits = limits();
        if look(LOOKS)? {
            won(self.on_probation);
            return Ok(Turn::Found);
        }
        let away = thread::yield_now_timed();
        if away > limits.pressed {
            let found = look(1)?;
            if self.is_pressed(away, limits) {
                pressed(limits);
            } else if found {
                won(self.on_probation);
            } else {
                failed(self.on_probation);
            }
            return Ok(if found { Turn::Found } else { Turn::Over });
        }
        if clock::ticks().wrapping_sub(self.start) >= limits.spin {
            failed(self.on_probation);
            return Ok(Turn::Over);
        }
        Ok(Turn::Again)
    }

    /// Whether others need the cores more than this process needs to spin, after a yield of `away`
    /// ticks. A short absence is most likely due to the very peer we wait for, on the same core; a
    /// long one, or many, to threads that are at work.
    fn is_pressed(&self, away: u64, limits: &Limits) -> bool {
        let mut luck = LUCK.get();
        let much = luck.lose(clock::ticks(), away, limits.busy);
        LUCK.set(luck);
        !without(Rule::Ban)
            && (away > limits.busy
                || ((much || self.on_probation) && thread::runnable().is_some_and(|n| n > limits.cores)))
    }
}

/// A wait that has ended in a sleep was over after `ticks` ticks.
pub(crate) fn slept(ticks: u64) {
    SLEPT.set((SLEPT.get() + 1).min(MOST_SLEEPS));
    if ticks < limits().near {
        LUCK.set(Luck { skip: 0, ..LUCK.get() });
    }
}

fn won(on_probation: bool) {
    SLEPT.set(0);
    let mut luck = LUCK.get();
    luck.back = 0;
    luck.wins += 1;
    if luck.wins >= FORGIVE {
        luck.wins = 0;
        BAN.store(BAN.load(Relaxed) / 2, Relaxed);
    }
    LUCK.set(luck);
    if on_probation {
        OFF_UNTIL.store(0, Relaxed);
    }
}

fn failed(on_probation: bool) {
    let mut luck = LUCK.get();
    luck.back = (luck.back * 2 + 1).min(MAX_SKIP);
    luck.skip = luck.back;
    LUCK.set(luck);
    if on_probation {
        OFF_UNTIL.store(0, Relaxed);
    }
}

fn pressed(limits: &Limits) {
    let ban = (BAN.load(Relaxed) * 4).clamp(limits.ban_min, limits.ban_max);
    BAN.store(ban, Relaxed);
    OFF_UNTIL.store(clock::ticks() + ban, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_slept_a_few_times_looks_no_more_until_there_was_something() {
        let long = limits().pressed * 2;
        assert!(!sleeps_as_a_rule());
        (0..100).for_each(|_| slept(long));
        assert!(sleeps_as_a_rule());
        slept_unseen(0);
        assert!(sleeps_as_a_rule(), "once does not count");
        slept_unseen(long);
        (0..2).for_each(|_| slept_unseen(0));
        assert!(!sleeps_as_a_rule());
        (0..SLEEPS).for_each(|_| slept(long));
        assert!(sleeps_as_a_rule());
        won(false);
        assert!(!sleeps_as_a_rule(), "spinning is better");
    }

    #[test]
    fn a_thread_that_loses_much_of_its_time_notices_and_one_that_loses_little_does_not() {
        let mut luck = Luck::default();
        assert!((1..1000).all(|n| !luck.lose(n * 1000, 100, 1500)), "a tenth of its time");
        let mut luck = Luck::default();
        let first = (1..1000).find(|&n| luck.lose(n * 1000, 250, 1500));
        assert_eq!(first, Some(12), "a quarter: an eighth is too much, and adds up");
        assert!(!luck.lose(14_000, 250, 1500), "and begins anew");
        assert!(Luck::default().lose(5, 1501, 1500), "all at once");
    }
}
