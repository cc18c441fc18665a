//! The way back of finished segments: a ring of a few places from the consumer to the producer.
//! Segments that do not fit go back to the allocator, so that a queue does not keep the memory of
//! its longest backlog.
//!
//! A place is empty (null) or holds a segment. The consumer fills places in order, and the producer
//! empties them in the same order. So neither needs to know the other's position.

use super::segment::{self, Buffer};
use crate::sync::atomic::{AtomicPtr, Ordering};

#[cfg(not(loom))]
const PLACES: usize = 4;
#[cfg(loom)]
const PLACES: usize = 2;

/// The places of the ring.
pub(super) struct RecycleRing {
    // Relaxed: own: only the consumer fills an empty place, and only the producer empties a full
    // one; it takes the segment with Acquire. Alone, at the end.
    places: [AtomicPtr<Buffer>; PLACES],
}

impl RecycleRing {
    pub(super) fn new() -> Self {
        RecycleRing { places: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())) }
    }

    /// Gives a finished segment back. Frees it if the ring is full. `turn` counts the caller's
    /// earlier successes.
    ///
    /// # Safety
    /// Only the consumer calls this, and the segment is not used again.
    pub(super) unsafe fn give(&self, turn: &mut usize, buffer: *mut Buffer) {
        let place = &self.places[*turn % PLACES];
        // Relaxed: own: an empty place carries no data. Only this end fills it, so it stays empty.
        if place.load(Ordering::Relaxed).is_null() {
            // Release: our reads of the segment are over; pairs with the Acquire in `take`.
            place.store(buffer, Ordering::Release);
            *turn = turn.wrapping_add(1);
        } else {
            // SAFETY: the caller's promise.
            unsafe { segment::free(buffer) };
        }
    }

    /// Takes the oldest finished segment. `turn` counts the caller's earlier successes. Only the
    /// producer calls this.
    pub(super) fn take(&self, turn: &mut usize) -> Option<*mut Buffer> {
        let place = &self.places[*turn % PLACES];
        // Acquire pairs with the Release in `give`.
        let buffer = place.load(Ordering::Acquire);
        if buffer.is_null() {
            return None;
        }
        // Relaxed: own: only this end empties a place. If the consumer sees this late, it frees a
        // segment.
        place.store(std::ptr::null_mut(), Ordering::Relaxed);
        *turn = turn.wrapping_add(1);
        Some(buffer)
    }

    /// Frees the remaining segments.
    ///
    /// # Safety
    /// Both sides are gone. To be called once.
    pub(super) unsafe fn free_all(&self) {
        for place in &self.places {
            // Relaxed: alone.
            let buffer = place.load(Ordering::Relaxed);
            if !buffer.is_null() {
                // SAFETY: a segment in the ring belongs to the ring alone.
                unsafe { segment::free(buffer) };
            }
        }
    }
}
