//! Pacing: a blocking sender that is faster than its peer is held up a moment, so that both work on
//! what is in the caches instead of filling the queue up to the high-water mark.

use super::{Link, Outgoing, Store};
use crate::ablation::{Rule, without};
use crate::conn::wait_for_room;
use crate::timing::idle;
use std::convert::Infallible;
use std::time::Duration;

/// This number of bytes queued while the kernel is full makes a sender wait a moment.
const PACE_BYTES: u64 = 512 * 1024;
/// How long it waits at most for a peer that takes nothing.
pub(super) const PACE_TIME: Duration = Duration::from_millis(5);
/// The same over inproc, for bodies of some length: more than this would be written and read
/// outside of the caches.
const INPROC_PACE_LEN: usize = 8 * 1024;
const INPROC_PACE_BYTES: u64 = 2 * 1024 * 1024;

impl Outgoing {
    /// The kernel is full and much is queued: waits a moment for it, so that a sender that is
    /// faster than its peer works on what is in the cache instead of filling its queue up to the
    /// high-water mark. A peer that takes nothing is waited for only once, until it has taken
    /// something.
    pub(super) fn pace(&mut self, link: &Link) {
        let (Link::Wire(connection), Store::Queue(writer)) = (link, &self.store) else { return };
        if writer.unflushed_bytes() < PACE_BYTES || without(Rule::Pace) {
            return;
        }
        while writer.unflushed_bytes() >= PACE_BYTES && self.paced_out != Some(connection.writes()) {
            let Some(stream) = connection.writable_stream() else { return };
            let writable = wait_for_room(&stream, PACE_TIME);
            connection.try_flush();
            self.paced_out = (!writable).then(|| connection.writes());
        }
    }

    /// As `pace`, for an inproc peer and a message of `len` bytes.
    #[inline(always)]
    pub(super) fn pace_inproc(&mut self, len: usize) {
        if len >= INPROC_PACE_LEN {
            self.pace_large();
        }
    }

    #[inline(never)]
    fn pace_large(&mut self) {
        if !without(Rule::Pace)
            && let Store::Queue(writer) = &mut self.store
            && writer.is_ahead(INPROC_PACE_BYTES)
        {
            self.await_inproc_peer();
        }
    }

    /// Waits until the inproc peer has caught up, or stops taking messages; then not again before
    /// it has taken one.
    #[cold]
    fn await_inproc_peer(&mut self) {
        let Store::Queue(writer) = &self.store else { return };
        let mut consumed = writer.consumed();
        while writer.ahead() >= INPROC_PACE_BYTES && self.paced_out != Some(consumed) {
            let has_taken = |times| {
                Ok::<_, Infallible>((0..times).any(|_| {
                    std::hint::spin_loop();
                    writer.consumed() != consumed
                }))
            };
            match idle::spin(has_taken) {
                Ok(true) => consumed = writer.consumed(),
                _ => self.paced_out = Some(consumed),
            }
        }
    }
}
