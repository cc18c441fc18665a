//! What a pipe leaves to be done before its owner sleeps. The owner keeps the lists, so that it
//! does not look at each of its pipes.

use std::sync::OnceLock;

use super::{PipeId, cork};
use crate::error::Error;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};

/// The pipes that have something to be done before their owner sleeps, of however many. And what
/// the pipes of a socket count together.
#[derive(Debug, Default)]
pub(crate) struct PipesShared {
    /// The flush rule has left something queued in these.
    pub(super) unflushed: Mutex<Vec<PipeId>>,
    /// These were left to the sweep, and then to give up their memory.
    pub(super) unreleased: Mutex<Vec<PipeId>>,
    /// Messages that had no peer to go to.
    // Relaxed: own, the owner's; a number to others.
    unroutable: AtomicU64,
    /// Calls that were refused because it was not their turn (EFSM).
    // Relaxed: own, the owner's; a number to others.
    out_of_turn: AtomicU64,
    /// Subscriptions and messages of peers that may not use their topics.
    // Relaxed: own, the owner's; a number to others.
    topics_refused: AtomicU64,
    /// The routing id of the last message that had no peer to go to, if the socket is observed.
    last_unroutable_id: OnceLock<Mutex<Vec<u8>>>,
}

impl PipesShared {
    /// Messages that had no peer to go to.
    pub(crate) fn unroutable(&self) -> u64 {
        self.unroutable.load(Relaxed)
    }

    /// Owner: one more had none, by this routing id.
    #[cold]
    pub(crate) fn count_unroutable(&self, name: &[u8]) {
        self.unroutable.store(self.unroutable() + 1, Relaxed);
        if let Some(astray) = self.last_unroutable_id.get() {
            let mut astray = lock(astray);
            astray.clear();
            astray.extend_from_slice(name);
        }
    }

    /// Subscriptions and messages of peers that may not use their topics.
    pub(crate) fn topics_refused(&self) -> u64 {
        self.topics_refused.load(Relaxed)
    }

    /// Owner: there was one more.
    pub(crate) fn count_topic_refused(&self) {
        self.topics_refused.store(self.topics_refused() + 1, Relaxed);
    }

    /// Calls that were refused because it was not their turn.
    pub(crate) fn out_of_turn(&self) -> u64 {
        self.out_of_turn.load(Relaxed)
    }

    /// Owner: one more is refused, with this error.
    #[cold]
    pub(crate) fn refuse_out_of_turn(&self) -> Error {
        self.out_of_turn.store(self.out_of_turn() + 1, Relaxed);
        Error::State
    }

    /// From now on the routing id of the last message that had no peer to go to is kept.
    pub(crate) fn record_unroutable_ids(&self) {
        let _ = self.last_unroutable_id.set(Mutex::default());
    }

    /// The routing id of the last one.
    pub(crate) fn last_unroutable_id(&self) -> Vec<u8> {
        self.last_unroutable_id.get().map_or_else(Vec::new, |astray| lock(astray).clone())
    }
}

/// What one pipe has told its owner.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    /// That it must be flushed.
    pub(super) flush: bool,
    /// That it is to give up its memory.
    pub(super) release: bool,
    /// The pipe's name, and where it tells this.
    list: Option<(PipeId, Arc<PipesShared>)>,
}

impl DeferredWork {
    /// The pipe has a name and an owner.
    pub(super) fn attach(&mut self, id: PipeId, list: Arc<PipesShared>) {
        self.list = Some((id, list));
    }

    /// Something stays queued: the owner flushes it before it sleeps.
    pub(super) fn defer_flush(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.flush) {
            lock(&list.unflushed).push(*id);
            self.flush = true;
        }
    }

    /// What is queued was left to the sweep, and the memory of the queue is given up after it.
    pub(super) fn defer_release(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.release) {
            lock(&list.unreleased).push(*id);
            self.release = true;
        }
    }

    /// Whether the owner is corked.
    pub(super) fn is_corked(&self) -> bool {
        cork::is_corked(self.list.as_ref().map(|(_, left)| left))
    }
}
