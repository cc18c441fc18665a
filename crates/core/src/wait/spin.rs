//! How long to spin before a sleep.
//!
//! A wake-up costs about 20 µs, so that is how long a wait looks again and again first. Every few looks it yields the core and takes the
//! time: a yield that takes long says that somebody else needs the core, and spinning is banned in the whole process for a while. Spins
//! that fail make the next ones rarer, so a socket that is idle costs nothing. `TAUT_SPIN_US` sets the time; 0 is never.

use std::cell::Cell;
use std::sync::OnceLock;

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

/// The limits in clock ticks.
struct Limits {
    spin: u64,
    pressed: u64,
    ban_min: u64,
    ban_max: u64,
    guard: u64,
}

fn limits() -> &'static Limits {
    static LIMITS: OnceLock<Limits> = OnceLock::new();
    LIMITS.get_or_init(|| {
        let asked = std::env::var("TAUT_SPIN_US").ok().and_then(|text| text.trim().parse::<u64>().ok());
        // On one core nothing can arrive while we spin.
        let micros = if thread::cpu_count() < 2 { 0 } else { asked.unwrap_or(20).min(10_000) };
        let ticks = |micros: u64| clock::nanos_to_ticks(micros * 1000);
        Limits {
            spin: ticks(micros),
            pressed: ticks(5),
            ban_min: ticks(4_000),
            ban_max: ticks(256_000),
            guard: ticks(1_000),
        }
    })
}

/// No spinning before this tick, anywhere in the process; 0: no ban.
static OFF_UNTIL: AtomicU64 = AtomicU64::new(0);
/// The length of the last ban.
static BAN: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Default)]
struct Luck {
    /// Waits still to go without a spin.
    skip: u32,
    /// What `skip` was set to last.
    back: u32,
    wins: u32,
}

thread_local! {
    static LUCK: Cell<Luck> = const { Cell::new(Luck { skip: 0, back: 0, wins: 0 }) };
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
    // Relaxed throughout: these words order nothing else.
    match OFF_UNTIL.load(Relaxed) {
        0 => Some(false),
        off if now >= off => {
            OFF_UNTIL.compare_exchange(off, now + limits.guard, Relaxed, Relaxed).is_ok().then_some(true)
        }
        _ => None,
    }
}

/// Looks until `look` says true, for as long as the rule allows. False: time to sleep.
pub(super) fn spin(mut look: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
    let limits = limits();
    let start = clock::ticks();
    let Some(on_probation) = may_spin(start, limits) else { return Ok(false) };
    loop {
        for _ in 0..LOOKS {
            if look()? {
                won(on_probation);
                return Ok(true);
            }
        }
        if thread::yield_now_timed() > limits.pressed {
            pressed(limits);
            return Ok(false);
        }
        if clock::ticks().wrapping_sub(start) >= limits.spin {
            failed(on_probation);
            return Ok(false);
        }
    }
}

fn won(on_probation: bool) {
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
