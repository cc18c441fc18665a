//! Rounds of the I/O thread over many connections while messages come: rounds of the sweep
//! (`driver/sweep.rs`) and rounds over one log (`conn/log_readers.rs`).
//!
//! *A rest may take half as long as the round before it.* Single messages are written at once. If a
//! round over a stream finds few bytes per connection, a rest helps both sides: the senders, which
//! may need this very core, put more bytes into each write. The rest delays a message by at most
//! half of a round.

use super::flush::FULL_BYTES;
use super::{SLICE, WAKE, supervisor};
use crate::rules::{Rule, is_disabled};
use std::time::Duration;

/// Shortest rest of the sweep, in nanoseconds. If the rest would be shorter, the next round begins
/// at once, because then the sender lacks time and not the sweep.
const SHORTEST_OF_SWEEP_NS: u64 = supervisor::SLOWEST;
/// Shortest rest of rounds over a log, in nanoseconds.
const SHORTEST_OF_LOG_NS: u64 = WAKE;
/// Up to this many bytes per connection, a sixteenth of a full write, waiting makes writes cheaper.
/// A log that grows by this number of bytes during one round is in a stream.
const LITTLE_BYTES: u64 = FULL_BYTES / 16;

fn pause_after(took: Duration) -> Duration {
    if is_disabled(Rule::Rests) { Duration::ZERO } else { (took / 2).min(Duration::from_nanos(SLICE)) }
}

/// Returns the sweep's rest after a round of `took` that wrote `bytes` bytes of `connections`
/// connections. `waiting` of them have new bytes by now.
#[inline]
pub fn pause_after_sweep(took: Duration, connections: usize, bytes: u64, waiting: usize) -> Option<Duration> {
    let streams = waiting * 2 >= connections;
    let little = bytes < connections as u64 * LITTLE_BYTES;
    let rest = pause_after(took);
    (streams && little && rest >= Duration::from_nanos(SHORTEST_OF_SWEEP_NS)).then_some(rest)
}

/// Returns the I/O thread's rest after a round of `took` over the readers of a log that grew by
/// `grown` bytes in it. If `owner_writes` is set, the owner itself was writing to some readers, and
/// a round would only check the bytes that it left.
#[inline]
pub fn pause_after_log_round(took: Duration, grown: u64, owner_writes: bool) -> Duration {
    let streams = owner_writes || grown >= LITTLE_BYTES;
    let rests = streams && grown < FULL_BYTES && !is_disabled(Rule::Rests);
    if rests { pause_after(took).max(Duration::from_nanos(SHORTEST_OF_LOG_NS)) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_pauses_after_rounds_with_few_bytes_each() {
        let rest =
            |millis, bytes, waiting| pause_after_sweep(Duration::from_millis(millis), 100, bytes, waiting);
        assert_eq!(rest(3, 6600, 50), Some(Duration::from_micros(1500)));
        assert_eq!(rest(1000, 6600, 50), Some(Duration::from_nanos(SLICE)));
        assert_eq!(rest(1000, 6600, 49), None, "one message each, and then few");
        assert_eq!(rest(1000, 100 * 4096, 100), None, "enough for each");
        assert_eq!(rest(0, 6600, 100), None, "too short to tell");
    }

    #[test]
    fn log_rounds_pause_in_a_stream() {
        let rest = |grown, owner_writes, micros| {
            pause_after_log_round(Duration::from_micros(micros), grown, owner_writes).as_micros()
        };
        assert_eq!(rest(66, false, 300), 0, "a message now and then");
        assert_eq!(rest(4096, false, 300), 150, "too little for a full write");
        assert_eq!(rest(FULL_BYTES, false, 300), 0, "enough for one");
        assert_eq!(rest(0, true, 10), 20, "the owner does it");
        assert_eq!(rest(0, true, 3000), 1500);
        assert_eq!(rest(FULL_BYTES, true, 3000), 0);
    }
}
