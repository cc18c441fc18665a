//! Ticks for systems without a known cheaper counter: nanoseconds of the monotonic clock.

use super::Rate;
use crate::time::monotonic_nanos;

/// Returns the current tick.
#[inline]
pub fn ticks() -> u64 {
    monotonic_nanos()
}

pub(super) fn measure() -> Rate {
    Rate::UNITY
}
