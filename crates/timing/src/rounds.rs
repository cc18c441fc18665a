//! Rounds of the I/O thread over the readers of one log while messages come (see `log_readers.rs`).
//!
//! *A rest may take half as long as the round before it.* Single messages are written at once. If a
//! round over a stream finds few bytes per connection, a rest helps both sides: the senders, which
//! may need this very core, put more bytes into each write. The rest delays a message by at most
//! half of a round.

use super::flush::FULL_BYTES;
use super::{SLICE, WAKE};
use crate::rules::{Rule, is_disabled};
use std::time::Duration;

/// A log that grows by this number of bytes during one round, a sixteenth of a full write, is in a
/// stream.
const LITTLE_BYTES: u64 = FULL_BYTES / 16;

/// Returns the I/O thread's rest after a round of `took` over the readers of a log that grew by
/// `grown` bytes in it. If `owner_writes` is set, the owner itself was writing to some readers, and
/// a round would only check the bytes that it left.
#[inline]
pub fn pause_after_log_round(took: Duration, grown: u64, owner_writes: bool) -> Duration {
    let streams = owner_writes || grown >= LITTLE_BYTES;
    if streams && grown < FULL_BYTES && !is_disabled(Rule::Rests) {
        (took / 2).clamp(Duration::from_nanos(WAKE), Duration::from_nanos(SLICE))
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
