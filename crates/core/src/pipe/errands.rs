//! Work that a pipe defers until its owner sleeps. The owner keeps lists of these pipes, so that it
//! does not check all of its pipes.

use std::sync::OnceLock;

use super::{PipeId, cork};
use crate::error::Error;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};

/// Pipes with deferred work, and the counters that all pipes of a socket share.
#[derive(Debug, Default)]
pub(crate) struct PipesShared {
    /// Pipes with messages that the flush rule left queued.
    pub(super) unflushed: Mutex<Vec<PipeId>>,
    /// Pipes that a sweep flushes, and that release their memory after it.
    pub(super) unreleased: Mutex<Vec<PipeId>>,
    /// Number of messages without a peer for their routing id.
    // Relaxed: own, the owner's; a number to others.
    unroutable: AtomicU64,
    /// Number of calls that were refused because they were out of turn (EFSM).
    // Relaxed: own, the owner's; a number to others.
    out_of_turn: AtomicU64,
    /// Number of subscriptions and messages with a topic that their peer may not use.
    // Relaxed: own, the owner's; a number to others.
    topics_refused: AtomicU64,
    /// Routing id of the last unroutable message, if the socket is observed.
    last_unroutable_id: OnceLock<Mutex<Vec<u8>>>,
}

impl PipesShared {
    /// Returns the number of messages without a peer for their routing id.
    pub(crate) fn unroutable(&self) -> u64 {
        self.unroutable.load(Relaxed)
    }

    /// Counts an unroutable message, and keeps its routing id if the socket is observed. Called by
    /// the owner.
    #[cold]
    pub(crate) fn count_unroutable(&self, name: &[u8]) {
        self.unroutable.store(self.unroutable() + 1, Relaxed);
        if let Some(astray) = self.last_unroutable_id.get() {
            let mut astray = lock(astray);
            astray.clear();
            astray.extend_from_slice(name);
        }
    }

    /// Returns the number of subscriptions and messages with a topic that their peer may not use.
    pub(crate) fn topics_refused(&self) -> u64 {
        self.topics_refused.load(Relaxed)
    }

    /// Counts a refused topic. Called by the owner.
    pub(crate) fn count_topic_refused(&self) {
        self.topics_refused.store(self.topics_refused() + 1, Relaxed);
    }

    /// Returns the number of calls that were refused because they were out of turn.
    pub(crate) fn out_of_turn(&self) -> u64 {
        self.out_of_turn.load(Relaxed)
    }

    /// Counts a refused call, and returns its error. Called by the owner.
    #[cold]
    pub(crate) fn refuse_out_of_turn(&self) -> Error {
        self.out_of_turn.store(self.out_of_turn() + 1, Relaxed);
        Error::State
    }

    /// Starts to keep the routing id of the last unroutable message.
    pub(crate) fn record_unroutable_ids(&self) {
        let _ = self.last_unroutable_id.set(Mutex::default());
    }

    /// Returns the routing id of the last unroutable message.
    pub(crate) fn last_unroutable_id(&self) -> Vec<u8> {
        self.last_unroutable_id.get().map_or_else(Vec::new, |astray| lock(astray).clone())
    }
}

/// Deferred work that one pipe has reported to its owner.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    /// True if the owner must flush the pipe.
    pub(super) flush: bool,
    /// True if the pipe must release its memory.
    pub(super) release: bool,
    /// ID of the pipe, and the lists of its owner.
    list: Option<(PipeId, Arc<PipesShared>)>,
}

impl DeferredWork {
    /// Sets the ID of the pipe and the lists of its owner.
    pub(super) fn attach(&mut self, id: PipeId, list: Arc<PipesShared>) {
        self.list = Some((id, list));
    }

    /// Asks the owner to flush the queued messages before it sleeps.
    pub(super) fn defer_flush(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.flush) {
            lock(&list.unflushed).push(*id);
            self.flush = true;
        }
    }

    /// Asks the owner to release the queue's memory after the sweep has written the queued
    /// messages.
    pub(super) fn defer_release(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.release) {
            lock(&list.unreleased).push(*id);
            self.release = true;
        }
    }

    /// True if the owner is corked.
    pub(super) fn is_corked(&self) -> bool {
        cork::is_corked(self.list.as_ref().map(|(_, left)| left))
    }
}
