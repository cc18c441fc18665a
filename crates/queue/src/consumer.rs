//! Common part of the two consumers of a chain (`FrameReader`, `ByteDrain`): releasing nodes.

use super::chain::Handle;
use super::segment::{self, Buffer, LARGE, Node, Position};
use crate::sync::atomic::Ordering;

/// The consuming end of a chain.
pub(super) struct Consumer {
    pub(super) shared: Handle,
    /// The oldest node that is not released; null until the first bytes were seen.
    first: *mut Node,
    turn: usize,
}

// SAFETY: the nodes from `first` on belong to the consuming side, which is used by one thread at a
// time.
unsafe impl Send for Consumer {}

impl Consumer {
    pub(super) fn new(shared: Handle) -> Self {
        Consumer { shared, first: std::ptr::null_mut(), turn: 0 }
    }

    /// Returns the start of the chain. Called when an Acquire load of the tail saw the first
    /// published bytes, for the first time or after `detach_nodes`.
    ///
    /// # Safety
    /// Bytes were published.
    pub(super) unsafe fn begin(&mut self) -> Position {
        self.first = self.shared.first.load(Ordering::Relaxed);
        // SAFETY: set by the producer before the first publication.
        Position { node: self.first, at: unsafe { (*self.first).start } }
    }

    /// Releases everything before `position`: whole buffers go back to the producer, and messages
    /// by reference are dropped.
    ///
    /// # Safety
    /// `position` is at or after all earlier positions, in published bytes. The caller does not use
    /// bytes or nodes before `position` from now on.
    #[inline]
    pub(super) unsafe fn release(&mut self, position: &Position) {
        // SAFETY: `position.node` is valid.
        if self.first != position.node || unsafe { (*position.node).external } {
            // SAFETY: passed on.
            unsafe { self.release_nodes(position) };
        }
    }

    /// Tells the producer how many messages and bytes the consumer has finished.
    #[inline]
    pub(super) fn credit(&self, messages: u64, bytes: u64) {
        // Release, both: pairs with the producer's loads of them.
        self.shared.credited.0.store(messages, Ordering::Release);
        self.shared.head.0.store(bytes, Ordering::Release);
    }

    unsafe fn release_nodes(&mut self, position: &Position) {
        while self.first != position.node {
            // SAFETY: the nodes up to `position` are linked and ours.
            let (next, finished) = unsafe { Node::release(self.first) };
            self.first = next;
            if let Some(buffer) = finished {
                // SAFETY: its last node was left.
                unsafe { self.finish(buffer) };
            }
        }
        // SAFETY: `position.node` is valid.
        let node = unsafe { &*position.node };
        // Free the memory now and not when the next message comes, because the application wants it
        // back.
        if node.external && position.at == node.end.load(Ordering::Relaxed) {
            // SAFETY: external, and ours.
            drop(unsafe { Node::take_message(position.node) });
        }
    }
}

impl Consumer {
    /// Forgets all nodes, on behalf of the producer as well. Returns the oldest node, or null if
    /// there is no node. The producer frees the nodes.
    pub(super) fn detach_nodes(&mut self) -> *mut Node {
        let begun = std::mem::replace(&mut self.first, std::ptr::null_mut());
        // Relaxed: alone, one thread owns both ends.
        let first = self.shared.first.load(Ordering::Relaxed);
        self.shared.first.store(std::ptr::null_mut(), Ordering::Relaxed);
        if begun.is_null() { first } else { begun }
    }

    /// # Safety
    /// The buffer is not used again.
    unsafe fn finish(&mut self, buffer: *mut Buffer) {
        // SAFETY: the caller's promise.
        if self.shared.kind.circulates() && unsafe { Buffer::size(buffer) } == LARGE {
            // SAFETY: the caller's promise.
            unsafe { segment::free(buffer) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.shared.ring.give(&mut self.turn, buffer) };
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // Relaxed: alone, `Handle::drop` passes it on to the handle that frees the chain.
            self.shared.first.store(self.first, Ordering::Relaxed);
        }
    }
}

impl Consumer {
    /// Ends the consumer, which has read everything before `position`, as the head word says.
    pub(super) fn stop(&mut self, position: Position) {
        debug_assert!(self.first == position.node);
        // Relaxed: alone, as for `first`.
        self.shared.stopped.store(position.at, Ordering::Relaxed);
    }
}
