//! How a thread waits: it looks, yields its core, looks again, and at last sleeps.
//!
//! *Looking may cost what sleeping costs.* To fall asleep and be woken takes about 20 µs
//! ([`WAKE`]), so that is for how long a thread looks first: whatever comes, waiting then costs
//! twice what the better of the two would have cost, at most (the ski rental problem).
//! `TAUT_SPIN_US` sets the time; 0 is: sleep at once. That goes for all waits: of blocking calls,
//! polls and tasks for messages, and of senders over inproc for their peer. (A sender that waits
//! for the kernel sleeps at once.)
//!
//! Two things that were seen lately say whether to look at all:
//!
//! - A few sleeps of the thread in a row that looking would not have saved ([`Vain`]): then it
//!   sleeps at once, until something is there again sooner. So a socket that is idle costs nothing.
//! - Yields of the process that took long ([`Losses`]): another thread needs the core. If the
//!   system has not enough cores for the threads that want to run, what is lost that way may be a
//!   share of the time. (If it has, it is the very peer that we wait for, and the system will soon
//!   give it another core, unless it were to see us asleep.)
//!
//! A receiver from inproc peers also waits between two looks ([`Pause`]). If it is faster than its
//! peer and looks all the time, it takes the queue's counter away from the peer with each look, and
//! gets one message for it: both then run at the speed at which a cache line travels. If it stays
//! away for a moment it finds a batch instead, and disturbs less. So once messages keep coming in
//! short intervals it pauses, longer each time as long as that pays, and not at all when messages
//! come one by one: then it is their latency that counts. While they come as fast as they can be
//! sent it stays away longer still, but goes on only as long as more of them come.
//!
//! Time comes in as ticks of the clock; [`Spin`] reads the clock for its callers.

use super::{SELDOM, SLICE, WAKE};
use crate::ablation::{Rule, without};
use std::cell::Cell;
use std::sync::OnceLock;

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use tautline_io::{clock, thread};

/// Looks between two yields.
const LOOKS: u32 = 8;
/// After this number of waits in vain the next one is expected to be, too; no more are counted than
/// the second value.
const VAIN_FROM: u32 = 4;
const MOST_VAIN: u32 = 4 * VAIN_FROM;

/// For how many microseconds a thread looks before it sleeps: `TAUT_SPIN_US`, or about what a
/// wake-up costs.
pub(crate) fn patience_us() -> u64 {
    static MICROS: OnceLock<u64> = OnceLock::new();
    *MICROS.get_or_init(|| {
        let asked = tautline_io::env::var_os("TAUT_SPIN_US")
            .and_then(|text| text.to_str()?.trim().parse::<u64>().ok());
        // On one core nothing can happen while we look.
        if thread::cpu_count() < 2 { 0 } else { asked.unwrap_or(WAKE / 1000).min(SLICE / 1000) }
    })
}

/// The times of the rule in clock ticks.
struct Times {
    /// How long to look.
    spin: u64,
    /// A sleep that was over so soon would have been saved by looking: all that waking takes on a
    /// busy machine, and more.
    near: u64,
    /// A yield that takes longer has given the core to another thread.
    pressed: u64,
    /// So much lost in yields, less what is paid for, is much; a yield that takes so long has given
    /// the core to a thread that is at work, a shorter one most likely to the peer that we wait
    /// for. No more than the second value is counted.
    much: u64,
    most: u64,
    cores: usize,
}

fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = |micros: u64| clock::nanos_to_ticks(micros * 1000);
        let pressed = clock::nanos_to_ticks(WAKE / 4);
        Times {
            spin: ticks(patience_us()),
            near: ticks(patience_us() * 10).max(pressed),
            pressed,
            much: ticks(150),
            most: ticks(4_000),
            cores: thread::cpu_count(),
        }
    })
}

/// Waits of a thread that looking did not shorten, halved with each that it did or would have.
#[derive(Debug, Clone, Copy, Default)]
struct Vain(u32);

impl Vain {
    fn note(&mut self, in_vain: bool) {
        self.0 = if in_vain { (self.0 + 1).min(MOST_VAIN) } else { self.0 / 2 };
    }

    fn expects_to_sleep(self) -> bool {
        self.0 >= VAIN_FROM && !without(Rule::Vain)
    }
}

thread_local! {
    static VAIN: Cell<Vain> = const { Cell::new(Vain(0)) };
}

fn note(in_vain: bool) {
    let mut vain = VAIN.get();
    vain.note(in_vain);
    VAIN.set(vain);
}

/// What the threads of the process lose in yields.
struct Losses {
    /// The tick by which all of it is paid for, where each tick that passes pays for its share (the
    /// generic cell rate algorithm).
    paid: AtomicU64, // Relaxed: number: a rule of thumb that orders nothing.
    /// No thread looks before this tick.
    rest: AtomicU64, // Relaxed: number, as `paid`.
}

static LOSSES: Losses = Losses { paid: AtomicU64::new(0), rest: AtomicU64::new(0) };

impl Losses {
    /// Whether threads may look at `now`.
    fn allow(&self, now: u64) -> bool {
        now >= self.rest.load(Relaxed)
    }

    /// A yield that ended at `now` took `away`. `starved` says whether more threads want to run
    /// than there are cores.
    fn add(&self, now: u64, away: u64, times: &Times, starved: impl FnOnce() -> bool) {
        let due = self.paid.load(Relaxed).saturating_sub(now) + away.min(times.most) * u64::from(SELDOM);
        let is_much = due > times.much * u64::from(SELDOM);
        self.paid.store(if is_much { now } else { now + due }, Relaxed);
        if is_much && !without(Rule::Losses) && (away > times.much || starved()) {
            self.rest.store(now + due, Relaxed);
        }
    }
}

/// Whether the next wait is likely to end in a sleep: then it is no use to look before.
pub(crate) fn expects_to_sleep() -> bool {
    VAIN.get().expects_to_sleep()
}

/// A wait has found at once what it was for.
pub(crate) fn found() {
    note(false);
}

/// A wait that has ended in a sleep was over after `ticks` ticks.
pub(crate) fn slept(ticks: u64) {
    note(ticks >= times().near);
}

/// Looks until `look`, which is told how many times to look at most, says true, for as long as the
/// rule allows. False: time to sleep.
///
/// # Errors
/// That of `look`.
pub(crate) fn spin<E>(mut look: impl FnMut(u32) -> Result<bool, E>) -> Result<bool, E> {
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
        let start = clock::ticks();
        let may_look = times().spin > 0 && !expects_to_sleep() && LOSSES.allow(start);
        may_look.then_some(Spin { start })
    }

    /// The tick at which it began.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Looks a few times, and yields the core once. After anything but [`Turn::Again`] the spin is
    /// over. `look` is told how many times to look at most.
    ///
    /// # Errors
    /// That of `look`.
    pub(crate) fn turn<E>(&self, look: &mut impl FnMut(u32) -> Result<bool, E>) -> Result<Turn, E> {
        let times = times();
        let mut is_there = look(LOOKS)?;
        let mut is_over = is_there;
        if !is_there {
            let away = thread::yield_now_timed();
            let now = clock::ticks();
            is_over = now.wrapping_sub(self.start) >= times.spin;
            if away > times.pressed {
                is_there = look(1)?;
                is_over = true;
                let starved = || thread::runnable().is_some_and(|n| n > times.cores);
                LOSSES.add(now, away, times, starved);
            }
        }
        if is_there {
            found();
        }
        Ok(match (is_there, is_over) {
            (true, _) => Turn::Found,
            (false, true) => Turn::Over,
            (false, false) => Turn::Again,
        })
    }
}

/// The first pause, and the longest. Where messages come as fast as can be the longest is [`WAKE`],
/// and after each [`LONG_NS`] it is looked whether more come.
const FIRST_NS: u64 = 200;
const LONG_NS: u64 = 2500;
/// A wait within this time for each message received since the last one, and once more, is in a
/// stream.
const STREAM_NS: u64 = 300;
/// A pause of no more than this for each message that came in it may become a long one.
const DENSE_NS: u64 = 60;
/// Messages found after a pause that make it worth while.
const WORTH: u64 = 3;
/// Waits in a stream before the first pause; doubled each time that one was in vain, up to
/// [`SELDOM`] times this.
const STREAK: u32 = 4;

/// A receiver's memory of its last waits.
#[derive(Debug)]
pub(crate) struct Pause {
    /// The length of the last pause in ticks; 0: there was none.
    ticks: u64,
    /// When the last wait began, and how many parts had been received and sent by then.
    last: u64,
    received: u64,
    sent: u64,
    /// Waits in a stream, and how many make a pause.
    streak: u32,
    needed: u32,
}

impl Pause {
    pub(crate) fn new() -> Self {
        Pause { ticks: 0, last: 0, received: 0, sent: 0, streak: 0, needed: STREAK }
    }

    /// The receiver has found nothing and is about to wait; in all it has `received` and `sent`
    /// this many parts. True: it has paused, and should look again. `arrived` is a count that
    /// changes with each message that comes.
    pub(crate) fn before_wait(&mut self, received: u64, sent: u64, arrived: impl Fn() -> u64) -> bool {
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
            // The latter: the sender is held up, or has come to an end.
            if self.last == end || std::mem::replace(&mut before, arrived()) == before {
                self.ticks = self.last - now;
                return true;
            }
            thread::yield_now_timed();
        }
    }

    /// How long to pause at `now`.
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
            self.needed = (self.needed * 2).min(STREAK * SELDOM);
            self.streak = 0;
            return 0;
        }
        self.streak += 1;
        if self.streak < self.needed { 0 } else { clock::nanos_to_ticks(FIRST_NS) }
    }
}

#[cfg(test)]
mod tests;
