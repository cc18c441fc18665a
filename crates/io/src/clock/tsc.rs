//! Ticks of the x86_64 time stamp counter, or of the monotonic clock if the counter cannot be
//! trusted.

use std::arch::x86_64::{__cpuid, _rdtsc};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use super::Rate;
use crate::time::monotonic_nanos;

/// Source that `ticks` uses.
// Relaxed: number: decided once, and racing threads come to the same result.
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = 0;
const COUNTER: u8 = 1;
const MONOTONIC: u8 = 2;

/// Returns the current tick.
#[inline]
pub fn ticks() -> u64 {
    if SOURCE.load(Relaxed) == COUNTER { counter() } else { read_slow() }
}

/// Compares the counter with the monotonic clock over 2 ms. Both ends are read to some 20 ns, which
/// makes the rate accurate to some 20 ppm.
pub(super) fn measure() -> Rate {
    if !is_trusted() {
        return Rate::UNITY;
    }
    let (first_tick, first_nano) = read_both_clocks();
    crate::thread::sleep(Duration::from_millis(2));
    let (last_tick, last_nano) = read_both_clocks();
    let ticks = u128::from(last_tick.saturating_sub(first_tick));
    let nanos = u128::from(last_nano.saturating_sub(first_nano));
    let factor = |of: u128, per: u128| u64::try_from((of << 32) / per.max(1)).unwrap_or(u64::MAX).max(1);
    Rate { ticks_per_nano: factor(ticks, nanos), nanos_per_tick: factor(nanos, ticks) }
}

/// Reads both clocks at one moment. Of several tries, takes the one with the shortest time between
/// the two reads, because the others were interrupted.
fn read_both_clocks() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..16 {
        let before = counter();
        let nanos = monotonic_nanos();
        let width = counter().saturating_sub(before);
        if width < best.0 {
            best = (width, before + width / 2, nanos);
        }
    }
    (best.1, best.2)
}

#[cold]
fn read_slow() -> u64 {
    if is_trusted() { counter() } else { monotonic_nanos() }
}

#[inline]
fn counter() -> u64 {
    // SAFETY: every x86_64 processor has the instruction.
    unsafe { _rdtsc() }
}

fn is_trusted() -> bool {
    let known = SOURCE.load(Relaxed);
    if known != UNKNOWN {
        return known == COUNTER;
    }
    let trusted = invariant() && kernel_agrees();
    SOURCE.store(if trusted { COUNTER } else { MONOTONIC }, Relaxed);
    trusted
}

/// True if the processor promises one constant rate in every power state.
#[allow(unused_unsafe, reason = "__cpuid became a safe function in later toolchains")]
fn invariant() -> bool {
    const POWER: u32 = 0x8000_0007;
    // SAFETY: every x86_64 processor has the instruction. The code asks only for leaves that the
    // processor has.
    unsafe { __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0 }
}

/// True if the kernel trusts the counter. The kernel measures at run time whether the counters of
/// the cores agree, and falls back to a slow timer if they do not.
fn kernel_agrees() -> bool {
    match std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Ok(name) => !matches!(name.trim(), "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit"),
        Err(_) => true,
    }
}
