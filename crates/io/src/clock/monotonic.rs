//! Ticks for systems without a known cheaper counter: nanoseconds of the monotonic clock.

use super::Rate;
use crate::time::monotonic_nanos;

#[inline]
pub(super) fn ticks() -> u64 {
    monotonic_nanos()
}

pub(super) fn measure() -> Rate {
    Rate::UNITY
}
