//! The receive queue of an XPUB's program: subscriptions of its peers, and messages from them.
//!
//! A program may never receive, so the queued subscriptions and messages are bounded. At most the
//! receive high-water mark of each peer is taken from its pipe. Subscriptions must take effect even
//! if the program does not receive. If more than [`MOST_WAITING`] bytes of notifications are
//! queued, the program hears of further changes later, and only of those that are still valid then.
//! A subscription that was cancelled before that is never reported.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::error::{NoMemory, check_memory};
use crate::pipe::PipeId;
use tautline_queue::message::{Message, Metadata};

/// Memory of a notification in addition to its bytes.
const NOTICE_COST: u64 = 96;
/// Upper limit for small allocations elsewhere: a node of a tree.
const SMALL_PIECES: usize = 4096;
/// Number of deferred changes that are delivered at a time.
const STEP: usize = 1000;

/// Maximum number of bytes of queued notifications, each with [`NOTICE_COST`].
const MOST_WAITING: u64 = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// Origin of a queued part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoticeOrigin {
    /// A part of a message of this peer, if the peer still exists.
    Message(Option<PipeId>),
    /// A subscription or cancellation that is already in force, and the pipe it came from, `None`
    /// if that pipe is gone or unknown.
    Applied(Option<PipeId>),
    /// A subscription or cancellation that the program decides on (ZMQ_XPUB_MANUAL), and the pipe
    /// it came from, `None` if that pipe is gone.
    Manual(Option<PipeId>),
}

impl NoticeOrigin {
    /// Returns the pipe that the part came from, if it is known and still exists.
    pub(super) fn pipe(self) -> Option<PipeId> {
        let (NoticeOrigin::Message(pipe) | NoticeOrigin::Applied(pipe) | NoticeOrigin::Manual(pipe)) = self;
        pipe
    }

    /// Returns the pipe whose request the program decides on.
    fn requester(self) -> Option<PipeId> {
        match self {
            NoticeOrigin::Manual(pipe) => pipe,
            NoticeOrigin::Message(_) | NoticeOrigin::Applied(_) => None,
        }
    }
}

/// A subscription or cancellation.
#[derive(Debug, Clone, Copy)]
pub(super) struct SubscriptionChange<'a> {
    pub(super) subscribe: bool,
    pub(super) topic: &'a [u8],
    /// True if it changes the set of topics, and is not one of several equal ones.
    pub(super) new: bool,
}

/// The receive queue of an XPUB's program.
#[derive(Debug, Default)]
pub(super) struct SubscriptionNotices {
    waiting: VecDeque<(Message, NoticeOrigin)>,
    /// Memory of the notifications in `waiting`.
    held: u64,
    /// Deferred changes for which there was no room, by topic and, if the program decides, by pipe.
    /// A second change of a topic cancels the first.
    deferred: BTreeMap<(Option<PipeId>, Vec<u8>), bool>,
    /// Number of queued whole messages of each pipe, indexed by the number of the pipe.
    messages: Vec<u32>,
    /// Buffer for building a notification.
    scratch: Vec<u8>,
}

impl SubscriptionNotices {
    /// True if the queue is empty. Deferred changes may still exist; `refill` queues them.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if `limit` messages of this peer are queued. 0 means no limit.
    pub(super) fn is_full(&self, id: PipeId, limit: u32) -> bool {
        limit != 0 && self.messages.get(id.0 as usize).is_some_and(|&waiting| waiting >= limit)
    }

    /// Makes room for notifications or parts of this many bytes each. Without it, a later addition
    /// aborts the process if memory is short.
    pub(super) fn make_room(&mut self, count: usize, bytes: usize) -> Result<(), NoMemory> {
        self.waiting.try_reserve(count)?;
        check_memory(SMALL_PIECES + count * (NOTICE_COST as usize + 3 * bytes))
    }

    /// Adds a part of a message of this peer.
    pub(super) fn put_part(&mut self, id: PipeId, part: Message) {
        if !part.more() {
            let number = id.0 as usize;
            self.messages.resize(self.messages.len().max(number + 1), 0);
            self.messages[number] += 1;
        }
        self.waiting.push_back((part, NoticeOrigin::Message(Some(id))));
    }

    /// Adds a subscription or cancellation that arrived in a frame with this metadata.
    pub(super) fn put_change(
        &mut self,
        change: SubscriptionChange<'_>,
        metadata: Option<&Arc<Metadata>>,
        origin: NoticeOrigin,
    ) {
        let cost = change.topic.len() as u64 + NOTICE_COST;
        if self.deferred.is_empty() && self.held + cost <= MOST_WAITING {
            self.enqueue(change.subscribe, change.topic, metadata, origin);
        } else if change.new {
            let key = (origin.requester(), change.topic.to_vec());
            if self.deferred.remove(&key).is_none() {
                self.deferred.insert(key, change.subscribe);
            }
        }
    }

    fn enqueue(
        &mut self,
        subscribe: bool,
        topic: &[u8],
        metadata: Option<&Arc<Metadata>>,
        origin: NoticeOrigin,
    ) {
        self.scratch.clear();
        self.scratch.push(u8::from(subscribe));
        self.scratch.extend_from_slice(topic);
        let mut part = Message::from_slice(&self.scratch);
        part.set_metadata(metadata.cloned());
        self.held += topic.len() as u64 + NOTICE_COST;
        self.waiting.push_back((part, origin));
    }

    /// Refills the empty queue with deferred changes. Returns true if there were any.
    pub(super) fn refill(&mut self) -> Result<bool, NoMemory> {
        for _ in 0..STEP {
            let Some(((_, topic), _)) = self.deferred.first_key_value() else { break };
            let bytes = topic.len();
            if let Err(error) = self.make_room(1, bytes) {
                return if self.waiting.is_empty() { Err(error) } else { Ok(true) };
            }
            let Some(((pipe, topic), subscribe)) = self.deferred.pop_first() else { break };
            let origin = pipe.map_or(NoticeOrigin::Applied(None), |pipe| NoticeOrigin::Manual(Some(pipe)));
            self.enqueue(subscribe, &topic, None, origin);
        }
        Ok(!self.waiting.is_empty())
    }

    /// Takes the next part.
    pub(super) fn take(&mut self) -> Option<(Message, NoticeOrigin)> {
        let (part, origin) = self.waiting.pop_front()?;
        match origin {
            NoticeOrigin::Message(Some(id)) if !part.more() => {
                if let Some(waiting) = self.messages.get_mut(id.0 as usize) {
                    *waiting -= 1;
                }
            }
            NoticeOrigin::Message(_) => {}
            // One byte of the part is the subscribe/cancel flag.
            NoticeOrigin::Applied(_) | NoticeOrigin::Manual(_) => {
                self.held -= part.len() as u64 - 1 + NOTICE_COST
            }
        }
        Some((part, origin))
    }

    /// Removes a pipe that is gone. If the pipe had requested topics from the program, the caller
    /// then calls `put_end` for each of them, and then `queue_some_deferred`.
    pub(super) fn forget(&mut self, id: PipeId) {
        if let Some(waiting) = self.messages.get_mut(id.0 as usize) {
            *waiting = 0;
        }
        for (_, origin) in &mut self.waiting {
            let (NoticeOrigin::Message(pipe) | NoticeOrigin::Applied(pipe) | NoticeOrigin::Manual(pipe)) =
                origin;
            pipe.take_if(|pipe| *pipe == id);
        }
    }

    /// Handles the end of a topic that a pipe, which is now gone, had requested from the program.
    /// If the program was notified of the request, it is notified of the end.
    pub(super) fn put_end(&mut self, id: PipeId, topic: &[u8]) {
        if self.deferred.is_empty() || self.deferred.remove(&(Some(id), topic.to_vec())).is_none() {
            self.enqueue(false, topic, None, NoticeOrigin::Manual(None));
        }
    }

    /// Queues deferred changes of a pipe that is gone. All its requests are ended, so only
    /// cancellations that it has sent itself are left. Each call queues some of them. Returns true
    /// when all are queued and another pipe may use its id.
    pub(super) fn queue_some_deferred(&mut self, id: PipeId) -> bool {
        let first = (Some(id), Vec::new());
        for _ in 0..STEP {
            let key = self.deferred.range(&first..).next().map(|(key, _)| key.clone());
            let Some(key) = key.filter(|(pipe, _)| *pipe == Some(id)) else { return true };
            self.deferred.remove(&key);
            self.enqueue(false, &key.1, None, NoticeOrigin::Manual(None));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PipeId = PipeId(0);
    const B: PipeId = PipeId(1);

    fn change(subscribe: bool, topic: &[u8]) -> SubscriptionChange<'_> {
        SubscriptionChange { subscribe, topic, new: true }
    }

    fn told(notices: &mut SubscriptionNotices) -> Vec<(Vec<u8>, NoticeOrigin)> {
        let mut all = Vec::new();
        while !notices.is_empty() || notices.refill() == Ok(true) {
            all.extend(notices.take().map(|(part, origin)| (part.as_slice().to_vec(), origin)));
        }
        all
    }

    /// Fills the queue up to its limit. Returns the number of notifications.
    fn fill(notices: &mut SubscriptionNotices, origin: NoticeOrigin) -> usize {
        let mut filled = 0;
        while notices.deferred.is_empty() {
            notices.put_change(change(true, b"filler"), None, origin);
            filled += 1;
        }
        notices.deferred.clear();
        filled - 1
    }

    #[test]
    fn cancelled_deferred_subscription_is_never_reported() {
        let mut notices = SubscriptionNotices::default();
        let filled = fill(&mut notices, NoticeOrigin::Applied(None));
        assert_eq!(filled as u64, MOST_WAITING / (6 + NOTICE_COST));
        for _ in 0..10_000 {
            notices.put_change(change(true, b"passing"), None, NoticeOrigin::Applied(None));
            notices.put_change(change(false, b"passing"), None, NoticeOrigin::Applied(None));
            notices.put_change(
                SubscriptionChange { subscribe: true, topic: b"again", new: false },
                None,
                NoticeOrigin::Applied(None),
            );
        }
        notices.put_change(change(true, b"stays"), None, NoticeOrigin::Applied(None));
        notices.put_change(change(false, b"ends"), None, NoticeOrigin::Applied(None));
        assert_eq!((notices.waiting.len(), notices.deferred.len()), (filled, 2));
        let told = told(&mut notices);
        assert_eq!(
            told[filled..],
            [
                (b"\0ends".to_vec(), NoticeOrigin::Applied(None)),
                (b"\x01stays".to_vec(), NoticeOrigin::Applied(None))
            ]
        );
        assert_eq!(notices.held, 0);
        notices.put_change(change(true, b"next"), None, NoticeOrigin::Applied(None));
        assert!(!notices.is_empty());
    }

    #[test]
    fn order_is_kept_while_changes_are_deferred() {
        let mut notices = SubscriptionNotices::default();
        fill(&mut notices, NoticeOrigin::Applied(None));
        notices.put_change(change(true, b"a"), None, NoticeOrigin::Applied(None));
        while notices.take().is_some() {}
        // There is room again, but this change must not be delivered before the deferred one.
        notices.put_change(change(false, b"a"), None, NoticeOrigin::Applied(None));
        assert_eq!(told(&mut notices), []);
    }

    #[test]
    fn removed_pipe_cancels_only_reported_requests() {
        let mut notices = SubscriptionNotices::default();
        let manual = |pipe| NoticeOrigin::Manual(Some(pipe));
        let filled = fill(&mut notices, manual(A));
        notices.put_change(change(true, b"unheard"), None, manual(A));
        notices.put_change(change(false, b"heard"), None, manual(A));
        notices.put_change(change(true, b"other"), None, manual(B));
        notices.forget(A);
        notices.put_end(A, b"filler");
        notices.put_end(A, b"unheard");
        assert!(notices.queue_some_deferred(A));
        let told = told(&mut notices);
        assert!(told[..filled].iter().all(|(_, origin)| *origin == NoticeOrigin::Manual(None)));
        let gone = |topic: &[u8]| (topic.to_vec(), NoticeOrigin::Manual(None));
        assert_eq!(told[filled..], [gone(b"\0filler"), gone(b"\0heard"), (b"\x01other".to_vec(), manual(B))]);
    }

    #[test]
    fn messages_of_a_peer_are_counted_until_they_are_taken() {
        let mut notices = SubscriptionNotices::default();
        for more in [true, false, false] {
            let mut part = Message::from_slice(b"part");
            part.set_more(more);
            notices.put_part(B, part);
        }
        assert!(notices.is_full(B, 2) && !notices.is_full(B, 3) && !notices.is_full(B, 0));
        assert!(!notices.is_full(A, 1) && !notices.is_full(PipeId(7), 1));
        notices.take();
        assert!(notices.is_full(B, 2));
        notices.take();
        assert!(!notices.is_full(B, 2));
        // Another pipe of that id has sent no message.
        notices.forget(B);
        assert!(!notices.is_full(B, 1));
        assert_eq!(notices.take().map(|(_, origin)| origin), Some(NoticeOrigin::Message(None)));
    }
}
