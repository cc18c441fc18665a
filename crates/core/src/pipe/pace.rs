//! Pacing: delays a blocking sender that is faster than its peer for a moment. Both then work on
//! data in the caches instead of filling the queue up to the high-water mark.

use super::Store;
use super::part::LARGE;
use crate::conn::inproc::InprocEnd;
use crate::conn::{Connection, wait_for_room};
use crate::idle;
use std::convert::Infallible;
use std::time::Duration;
use tautline_queue::FrameWriter;
use tautline_queue::sync::{Arc, lock};
use tautline_timing::rules::{Rule, is_disabled};
use tautline_timing::{RARE_INTERVAL, SEGMENT, SLICE};

/// If this many bytes are queued while the kernel is full, a sender waits a moment.
const PACE_BYTES: u64 = 8 * SEGMENT as u64;
/// Longest wait for a peer that takes no bytes.
pub(super) const PACE_TIME: Duration = Duration::from_nanos(SLICE);
/// If this many bytes of large bodies are queued for an inproc peer, a sender waits a moment. With
/// more bytes, both sides would work outside of the caches.
const INPROC_PACE_BYTES: u64 = 32 * SEGMENT as u64;
/// Largest number of sleeps that are skipped after sleeps in vain.
const MAX_SKIPS: u32 = 16 * RARE_INTERVAL;

/// Delays a sender.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// The peer's progress when it took no bytes while a sender waited for it: the number of
    /// `Connection::writes`, or of messages.
    pub(super) stuck_at: Option<u32>,
    /// Number of sleeps to skip after a sleep in vain. Doubled by each of them.
    skips: u32,
    /// Number of sleeps that are still skipped.
    skips_left: u32,
}

impl Pacer {
    /// Waits a moment if the kernel is full and many bytes are queued. A sender that is faster than
    /// its peer then works on data in the cache instead of filling its queue up to the high-water
    /// mark. The sender waits only once for a peer that takes no bytes, until the peer has taken
    /// some.
    pub(super) fn pace(&mut self, connection: &Arc<Connection>, store: &Store<FrameWriter>) {
        let Store::Queue(writer) = store else { return };
        if writer.unflushed_bytes() < PACE_BYTES || is_disabled(Rule::Pace) {
            return;
        }
        while writer.unflushed_bytes() >= PACE_BYTES && !self.is_stuck(lock(&connection.pump).taken.writes) {
            let Some(stream) = connection.writable_stream() else { return };
            let writable = wait_for_room(&stream, PACE_TIME);
            connection.try_flush();
            self.stuck_at = (!writable).then(|| lock(&connection.pump).taken.writes);
        }
    }

    /// Waits a moment for an inproc peer if many bytes are queued and the last message, of `len`
    /// bytes, is large.
    #[inline(always)]
    pub(super) fn pace_inproc(&mut self, end: &InprocEnd, store: &mut Store<FrameWriter>, len: usize) {
        if len >= LARGE {
            self.pace_large(end, store);
        }
    }

    #[inline(never)]
    fn pace_large(&mut self, end: &InprocEnd, store: &mut Store<FrameWriter>) {
        if !is_disabled(Rule::Pace)
            && let Store::Queue(writer) = store
            && writer.has_wire_bytes_in_flight(INPROC_PACE_BYTES)
        {
            self.await_inproc_peer(end, writer);
        }
    }

    /// Waits until the inproc peer has caught up or stops taking messages. In the second case it
    /// does not wait again before the peer has taken a message.
    #[cold]
    fn await_inproc_peer(&mut self, end: &InprocEnd, writer: &FrameWriter) {
        let mut consumed = writer.consumed();
        while writer.wire_bytes_in_flight() >= INPROC_PACE_BYTES && !self.is_stuck(consumed) {
            let has_taken = |times| {
                Ok::<_, Infallible>((0..times).any(|_| {
                    std::hint::spin_loop();
                    writer.consumed() != consumed
                }))
            };
            if idle::spin(has_taken) != Ok(true) {
                self.sleep_for_inproc_peer(end, writer);
            }
            let before = std::mem::replace(&mut consumed, writer.consumed());
            self.stuck_at = (before == consumed).then_some(before);
        }
    }

    /// Gives the core to an inproc peer that has taken no message during a spin: it may need this
    /// core. Otherwise the sender would fill the queue up to the high-water mark.
    fn sleep_for_inproc_peer(&mut self, end: &InprocEnd, writer: &FrameWriter) {
        if self.may_sleep() {
            let has_caught_up = || writer.wire_bytes_in_flight() < INPROC_PACE_BYTES;
            let queued = u32::try_from(writer.in_flight()).unwrap_or(u32::MAX);
            end.sleep_until_room(queued, PACE_TIME, has_caught_up);
            self.record_sleep(has_caught_up());
        }
    }

    /// True if the sender sleeps now. False after sleeps in vain: the peer may be slow, or the
    /// sending thread may be its owner.
    fn may_sleep(&mut self) -> bool {
        let may = self.skips_left == 0;
        self.skips_left = self.skips_left.saturating_sub(1);
        may
    }

    /// Notes that a sleep has ended.
    fn record_sleep(&mut self, has_caught_up: bool) {
        self.skips = if has_caught_up { 0 } else { (self.skips * 2 + 1).min(MAX_SKIPS) };
        self.skips_left = self.skips;
    }

    /// True if a peer with the progress `taken` has taken no bytes since a sender waited for it.
    pub(super) fn is_stuck(&self, taken: u32) -> bool {
        self.stuck_at == Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps(pacer: &mut Pacer, times: u32, has_caught_up: bool) -> usize {
        let sleep = |_: &u32| {
            let sleeps = pacer.may_sleep();
            if sleeps {
                pacer.record_sleep(has_caught_up);
            }
            sleeps
        };
        (0..times).filter(sleep).count()
    }

    #[test]
    fn sleeps_in_vain_become_rare_until_one_succeeds() {
        let mut pacer = Pacer::default();
        assert_eq!(sleeps(&mut pacer, 2048, false), 11);
        assert_eq!(sleeps(&mut pacer, 10 * (MAX_SKIPS + 1), false), 10);
        while !pacer.may_sleep() {}
        pacer.record_sleep(true);
        assert_eq!(sleeps(&mut pacer, 100, true), 100);
    }
}
