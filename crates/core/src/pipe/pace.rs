//! Pacing: a blocking sender that is faster than its peer is held up a moment, so that both work on
//! what is in the caches instead of filling the queue up to the high-water mark.

use super::Store;
use super::broadcast::LARGE;
use crate::ablation::{Rule, without};
use crate::conn::{Connection, wait_for_room};
use crate::queue::FrameWriter;
use crate::sync::Arc;
use crate::timing::{SEGMENT, SLICE, idle};
use std::convert::Infallible;
use std::time::Duration;

/// This number of bytes queued while the kernel is full makes a sender wait a moment.
const PACE_BYTES: u64 = 8 * SEGMENT as u64;
/// How long it waits at most for a peer that takes nothing.
pub(super) const PACE_TIME: Duration = Duration::from_nanos(SLICE);
/// The same over inproc, for large bodies: more than this would be written and read outside of the
/// caches.
const INPROC_PACE_BYTES: u64 = 32 * SEGMENT as u64;

/// Holds up a sender.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// The peer took nothing while a sender waited for it. What it had taken then: the number of
    /// `Connection::writes`, or of messages.
    stuck_at: Option<u32>,
}

impl Pacer {
    /// The kernel is full and much is queued: waits a moment for it, so that a sender that is
    /// faster than its peer works on what is in the cache instead of filling its queue up to the
    /// high-water mark. A peer that takes nothing is waited for only once, until it has taken
    /// something.
    pub(super) fn pace(&mut self, connection: &Arc<Connection>, store: &Store<FrameWriter>) {
        let Store::Queue(writer) = store else { return };
        if writer.unflushed_bytes() < PACE_BYTES || without(Rule::Pace) {
            return;
        }
        while writer.unflushed_bytes() >= PACE_BYTES && !self.is_stuck(connection.writes()) {
            let Some(stream) = connection.writable_stream() else { return };
            let writable = wait_for_room(&stream, PACE_TIME);
            connection.try_flush();
            self.stuck_at = (!writable).then(|| connection.writes());
        }
    }

    /// The same for an inproc peer and a message of `len` bytes.
    #[inline(always)]
    pub(super) fn pace_inproc(&mut self, store: &mut Store<FrameWriter>, len: usize) {
        if len >= LARGE {
            self.pace_large(store);
        }
    }

    #[inline(never)]
    fn pace_large(&mut self, store: &mut Store<FrameWriter>) {
        if !without(Rule::Pace)
            && let Store::Queue(writer) = store
            && writer.is_ahead(INPROC_PACE_BYTES)
        {
            self.await_inproc_peer(writer);
        }
    }

    /// Waits until the inproc peer has caught up, or stops taking messages; then not again before
    /// it has taken one.
    #[cold]
    fn await_inproc_peer(&mut self, writer: &FrameWriter) {
        let mut consumed = writer.consumed();
        while writer.ahead() >= INPROC_PACE_BYTES && !self.is_stuck(consumed) {
            let has_taken = |times| {
                Ok::<_, Infallible>((0..times).any(|_| {
                    std::hint::spin_loop();
                    writer.consumed() != consumed
                }))
            };
            match idle::spin(has_taken) {
                Ok(true) => consumed = writer.consumed(),
                _ => self.stuck_at = Some(consumed),
            }
        }
    }

    /// The peer took nothing while a sender waited, and has taken so much by then.
    pub(super) fn set_stuck(&mut self, taken: u32) {
        self.stuck_at = Some(taken);
    }

    /// The kernel has all that was sent.
    pub(super) fn caught_up(&mut self) {
        self.stuck_at = None;
    }

    /// Whether a peer that has taken so much has taken nothing since a sender waited for it.
    pub(super) fn is_stuck(&self, taken: u32) -> bool {
        self.stuck_at == Some(taken)
    }
}
