//! Deferred work: work of a pipe that its owner does before it sleeps. The owner keeps lists of the
//! pipes with such work, so that it does not check each of its pipes.
//!
//! A cork defers the writes of one socket: they are done when the cork is removed, or when there is
//! much to write. Each thread stores which socket it has corked. So a message that is sent without
//! a cork pays no cost: the stored value is read only when the flush rule is asked.

use super::PipeId;
use crate::error::Error;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// State shared by all pipes of a socket: the lists of pipes with deferred work, and common
/// counters.
#[derive(Debug, Default)]
pub(crate) struct PipesShared {
    /// Pipes with bytes that the flush rule has left queued.
    pub(super) unflushed: Mutex<Vec<PipeId>>,
    /// Pipes that were left to the sweep. After the sweep, their queues release their memory.
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
    /// Routing id of the last message whose destination had no peer. Recorded only if the socket is
    /// observed.
    last_unroutable_id: OnceLock<Mutex<Vec<u8>>>,
}

impl PipesShared {
    /// Returns the number of messages without a peer for their routing id.
    pub(crate) fn unroutable(&self) -> u64 {
        self.unroutable.load(Relaxed)
    }

    /// Called by the owner: counts one more message without a peer, and records its routing id.
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

    /// Called by the owner: counts one more subscription or message that a peer was not allowed.
    pub(crate) fn count_topic_refused(&self) {
        self.topics_refused.store(self.topics_refused() + 1, Relaxed);
    }

    /// Returns the number of calls that were refused because it was not their turn.
    pub(crate) fn out_of_turn(&self) -> u64 {
        self.out_of_turn.load(Relaxed)
    }

    /// Called by the owner: counts one more refused call, and returns its error.
    #[cold]
    pub(crate) fn refuse_out_of_turn(&self) -> Error {
        self.out_of_turn.store(self.out_of_turn() + 1, Relaxed);
        Error::State
    }

    /// Starts to record the routing id of the last message without a peer.
    pub(crate) fn record_unroutable_ids(&self) {
        let _ = self.last_unroutable_id.set(Mutex::default());
    }

    /// Returns the routing id of the last message without a peer, empty if there is none.
    pub(crate) fn last_unroutable_id(&self) -> Vec<u8> {
        self.last_unroutable_id.get().map_or_else(Vec::new, |astray| lock(astray).clone())
    }
}

/// Deferred work of one pipe.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    /// True if the pipe is in the list of unflushed pipes.
    pub(super) flush: bool,
    /// True if the pipe is in the list of pipes whose memory is to be released.
    pub(super) release: bool,
    /// Id of the pipe, and the lists of its socket. `None` before `attach`.
    list: Option<(PipeId, Arc<PipesShared>)>,
}

impl DeferredWork {
    /// Called when the pipe gets an id and an owner.
    pub(super) fn attach(&mut self, id: PipeId, list: Arc<PipesShared>) {
        self.list = Some((id, list));
    }

    /// Makes the owner flush this pipe before it sleeps, because bytes stay queued.
    pub(super) fn defer_flush(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.flush) {
            lock(&list.unflushed).push(*id);
            self.flush = true;
        }
    }

    /// Makes the owner release the memory of the queue after the sweep, which writes the queued
    /// bytes.
    pub(super) fn defer_release(&mut self) {
        if let (Some((id, list)), false) = (&self.list, self.release) {
            lock(&list.unreleased).push(*id);
            self.release = true;
        }
    }

    /// True if the calling thread has corked the owner's socket.
    pub(super) fn is_corked(&self) -> bool {
        let corked = CORKED.get();
        corked != 0 && self.list.as_ref().is_some_and(|(_, list)| Arc::as_ptr(list).addr() == corked)
    }
}

thread_local! {
    /// Address of the corked socket's `PipesShared`, which lists its unflushed pipes. 0 without a
    /// cork.
    static CORKED: Cell<usize> = const { Cell::new(0) };
}

/// A cork: while this value exists, its thread does not write the messages of one socket.
#[derive(Debug)]
pub struct Cork {
    /// Value of the cork before this one.
    former: usize,
    /// Binds the cork to its thread.
    not_send: PhantomData<*const ()>,
}

impl Cork {
    pub(super) fn new(left: &Arc<PipesShared>) -> Cork {
        Cork { former: CORKED.replace(Arc::as_ptr(left).addr()), not_send: PhantomData }
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        CORKED.set(self.former);
    }
}
