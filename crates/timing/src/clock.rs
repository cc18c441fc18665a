//! The unit of time of the rules: ticks of the caller's clock. This crate reads no clock; it only
//! converts its limits.

use std::sync::OnceLock;

static NANOS_TO_TICKS: OnceLock<fn(u64) -> u64> = OnceLock::new();

/// Sets the conversion from nanoseconds to ticks, before the first rule is used. Only the first
/// call has an effect. Without it, a tick is a nanosecond.
pub fn set_clock(nanos_to_ticks: fn(u64) -> u64) {
    let _ = NANOS_TO_TICKS.set(nanos_to_ticks);
}

/// Converts nanoseconds to ticks.
pub(crate) fn nanos_to_ticks(nanos: u64) -> u64 {
    NANOS_TO_TICKS.get().map_or(nanos, |convert| convert(nanos))
}
