//! The clock of the data path: ticks that cost about 10 ns to read, and their exchange rate to
//! nanoseconds. Code that measures its own intervals (the flush rule, a spin) reads ticks and
//! converts limits, not readings. Ticks of different threads are comparable; ticks of different
//! processes are not.
//!
//! On x86_64 a tick is one step of the processor's time stamp counter, if the counter runs at one
//! rate on all cores and the kernel trusts it. Otherwise a tick is a nanosecond of the monotonic
//! clock.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg_attr(all(target_arch = "x86_64", not(simulated)), path = "clock/tsc.rs")]
#[cfg_attr(not(all(target_arch = "x86_64", not(simulated))), path = "clock/monotonic.rs")]
mod source;

pub use source::ticks;

/// Converts nanoseconds to ticks. The first conversion in a process measures the rate, which takes
/// about 2 ms. Call [`calibrate`] to measure it at a better time.
#[inline]
pub fn nanos_to_ticks(nanos: u64) -> u64 {
    rate().ticks(nanos)
}

/// Converts ticks to nanoseconds. See [`nanos_to_ticks`] for the first call.
#[inline]
pub fn ticks_to_nanos(ticks: u64) -> u64 {
    rate().nanos(ticks)
}

/// Measures the rate now, unless it is known already, so that no later conversion waits for it.
pub fn calibrate() {
    rate();
}

/// Returns the time of day in microseconds since 1970 (UTC), or 0 before that.
pub fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

#[inline]
fn rate() -> &'static Rate {
    static RATE: OnceLock<Rate> = OnceLock::new();
    RATE.get_or_init(source::measure)
}

/// Ticks per nanosecond and its inverse, both in units of 2^-32.
#[derive(Debug, PartialEq)]
struct Rate {
    ticks_per_nano: u64,
    nanos_per_tick: u64,
}

impl Rate {
    /// Rate at which one tick is one nanosecond.
    const UNITY: Rate = Rate { ticks_per_nano: 1 << 32, nanos_per_tick: 1 << 32 };

    #[inline]
    fn ticks(&self, nanos: u64) -> u64 {
        scale(nanos, self.ticks_per_nano)
    }

    #[inline]
    fn nanos(&self, ticks: u64) -> u64 {
        scale(ticks, self.nanos_per_tick)
    }
}

/// Returns `value * factor / 2^32`, at most `u64::MAX`.
#[inline]
fn scale(value: u64, factor: u64) -> u64 {
    u64::try_from((u128::from(value) * u128::from(factor)) >> 32).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::monotonic_nanos;

    #[test]
    fn conversions_are_inverse_and_saturate() {
        for nanos in [0, 1_000, 20_000, 1_000_000_000, 3_600_000_000_000] {
            let back = ticks_to_nanos(nanos_to_ticks(nanos));
            assert!(back.abs_diff(nanos) <= 2 + nanos / 1_000_000_000, "{nanos} -> {back}");
        }
        let fast = Rate { ticks_per_nano: 3 << 32, nanos_per_tick: (1 << 32) / 3 };
        assert_eq!(fast.ticks(10), 30);
        assert_eq!(fast.ticks(u64::MAX), u64::MAX);
        assert_eq!(Rate::UNITY.nanos(u64::MAX), u64::MAX);
    }

    #[test]
    fn ticks_agree_with_the_kernel_clock() {
        calibrate();
        let (outer, first) = (monotonic_nanos(), ticks());
        let inner = monotonic_nanos();
        while monotonic_nanos() - inner < 10_000_000 {
            std::thread::yield_now();
        }
        let (inner, second) = (monotonic_nanos() - inner, ticks());
        let outer = monotonic_nanos() - outer;
        let measured = ticks_to_nanos(second - first);
        // The interval in ticks lies between the two intervals in nanoseconds, to 0.1 %.
        assert!(measured + measured / 1000 >= inner, "{measured} < {inner}");
        assert!(measured <= outer + outer / 1000, "{measured} > {outer}");
    }
}
