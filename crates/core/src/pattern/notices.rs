//! The receive queue of an XPUB's program: subscriptions of its peers, and messages from them.
//!
//! A program may never receive, so both are bounded. At most the receive high-water mark of each
//! peer is taken from its pipe. Subscriptions must take effect even so. If more than
//! [`MOST_WAITING`] bytes of notifications are queued, the program hears of further changes later,
//! and only of those that are still valid then. A subscription that was cancelled before that is
//! never reported.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::error::{NoMemory, at_hand};
use crate::message::{Message, Metadata};
use crate::pipe::PipeId;

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
pub(super) enum Origin {
    /// A part of a message of this peer, if the peer still exists.
    Message(Option<PipeId>),
    /// A subscription or cancellation that is already in force.
    Applied,
    /// A subscription or cancellation that the program decides on (ZMQ_XPUB_MANUAL), and the pipe
    /// it came from, `None` if that pipe is gone.
    Manual(Option<PipeId>),
}

impl Origin {
    fn pipe(self) -> Option<PipeId> {
        match self {
            Origin::Message(pipe) | Origin::Manual(pipe) => pipe,
            Origin::Applied => None,
        }
    }
}

/// A subscription or cancellation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) subscribe: bool,
    pub(super) topic: &'a [u8],
    /// True if it changes the set of topics, and is not one of several equal ones.
    pub(super) new: bool,
}

/// The whole queue.
#[derive(Debug, Default)]
pub(super) struct Notices {
    waiting: VecDeque<(Message, Origin)>,
    /// Memory of the notifications in `waiting`.
    held: u64,
    /// Deferred changes for which there was no room, by topic and, if the program decides, by pipe.
    /// A second change of a topic cancels the first.
    untold: BTreeMap<(Option<PipeId>, Vec<u8>), bool>,
    /// Number of queued whole messages, by pipe number.
    messages: Vec<u32>,
    /// Buffer for building a notification.
    scratch: Vec<u8>,
}

impl Notices {
    /// True if the queue is empty. There may be deferred changes: `refill`.
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
        at_hand(SMALL_PIECES + count * (NOTICE_COST as usize + 3 * bytes))
    }

    /// Adds a part of a message of this peer.
    pub(super) fn put_part(&mut self, id: PipeId, part: Message) {
        if !part.more() {
            let number = id.0 as usize;
            self.messages.resize(self.messages.len().max(number + 1), 0);
            self.messages[number] += 1;
        }
        self.waiting.push_back((part, Origin::Message(Some(id))));
    }

    /// Adds a subscription or cancellation that arrived in a frame with this metadata.
    pub(super) fn put_change(
        &mut self,
        change: Change<'_>,
        metadata: Option<&Arc<Metadata>>,
        origin: Origin,
    ) {
        let cost = change.topic.len() as u64 + NOTICE_COST;
        if self.untold.is_empty() && self.held + cost <= MOST_WAITING {
            self.enqueue(change.subscribe, change.topic, metadata, origin);
        } else if change.new {
            let key = (origin.pipe(), change.topic.to_vec());
            if self.untold.remove(&key).is_none() {
                self.untold.insert(key, change.subscribe);
            }
        }
    }

    fn enqueue(&mut self, subscribe: bool, topic: &[u8], metadata: Option<&Arc<Metadata>>, origin: Origin) {
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
            let Some(((_, topic), _)) = self.untold.first_key_value() else { break };
            let bytes = topic.len();
            if let Err(error) = self.make_room(1, bytes) {
                return if self.waiting.is_empty() { Err(error) } else { Ok(true) };
            }
            let Some(((pipe, topic), subscribe)) = self.untold.pop_first() else { break };
            let origin = pipe.map_or(Origin::Applied, |pipe| Origin::Manual(Some(pipe)));
            self.enqueue(subscribe, &topic, None, origin);
        }
        Ok(!self.waiting.is_empty())
    }

    /// Takes the next part.
    pub(super) fn take(&mut self) -> Option<(Message, Origin)> {
        let (part, origin) = self.waiting.pop_front()?;
        match origin {
            Origin::Message(Some(id)) if !part.more() => {
                if let Some(waiting) = self.messages.get_mut(id.0 as usize) {
                    *waiting -= 1;
                }
            }
            Origin::Message(_) => {}
            // One byte of the part is the subscribe/cancel flag.
            Origin::Applied | Origin::Manual(_) => self.held -= part.len() as u64 - 1 + NOTICE_COST,
        }
        Some((part, origin))
    }

    /// Removes a pipe that is gone. If the pipe had asked the program for topics, the caller then
    /// calls `put_end` for each of them, and then `forget_some`.
    pub(super) fn forget(&mut self, id: PipeId) {
        if let Some(waiting) = self.messages.get_mut(id.0 as usize) {
            *waiting = 0;
        }
        for (_, origin) in &mut self.waiting {
            match origin {
                Origin::Message(pipe) | Origin::Manual(pipe) if *pipe == Some(id) => *pipe = None,
                _ => {}
            }
        }
    }

    /// Handles the end of a topic that the pipe, which is gone, had asked the program for. If the
    /// program has heard of the request, it hears of the end.
    pub(super) fn put_end(&mut self, id: PipeId, topic: &[u8]) {
        if self.untold.is_empty() || self.untold.remove(&(Some(id), topic.to_vec())).is_none() {
            self.enqueue(false, topic, None, Origin::Manual(None));
        }
    }

    /// Queues deferred changes of a pipe that is gone. All its requests are ended, so only
    /// cancellations that it has sent itself are left. Each call queues some of them. Returns true
    /// when all are queued and another pipe may use its id.
    pub(super) fn forget_some(&mut self, id: PipeId) -> bool {
        let first = (Some(id), Vec::new());
        for _ in 0..STEP {
            let key = self.untold.range(&first..).next().map(|(key, _)| key.clone());
            let Some(key) = key.filter(|(pipe, _)| *pipe == Some(id)) else { return true };
            self.untold.remove(&key);
            self.enqueue(false, &key.1, None, Origin::Manual(None));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PipeId = PipeId(0);
    const B: PipeId = PipeId(1);

    fn change(subscribe: bool, topic: &[u8]) -> Change<'_> {
        Change { subscribe, topic, new: true }
    }

    fn told(notices: &mut Notices) -> Vec<(Vec<u8>, Origin)> {
        let mut all = Vec::new();
        while !notices.is_empty() || notices.refill() == Ok(true) {
            all.extend(notices.take().map(|(part, origin)| (part.as_slice().to_vec(), origin)));
        }
        all
    }

    /// Fills the queue up to its limit. Returns the number of notifications.
    fn fill(notices: &mut Notices, origin: Origin) -> usize {
        let mut filled = 0;
        while notices.untold.is_empty() {
            notices.put_change(change(true, b"filler"), None, origin);
            filled += 1;
        }
        notices.untold.clear();
        filled - 1
    }

    #[test]
    fn what_comes_and_goes_while_there_is_no_room_is_not_told() {
        let mut notices = Notices::default();
        let filled = fill(&mut notices, Origin::Applied);
        assert_eq!(filled as u64, MOST_WAITING / (6 + NOTICE_COST));
        for _ in 0..10_000 {
            notices.put_change(change(true, b"passing"), None, Origin::Applied);
            notices.put_change(change(false, b"passing"), None, Origin::Applied);
            notices.put_change(
                Change { subscribe: true, topic: b"again", new: false },
                None,
                Origin::Applied,
            );
        }
        notices.put_change(change(true, b"stays"), None, Origin::Applied);
        notices.put_change(change(false, b"ends"), None, Origin::Applied);
        assert_eq!((notices.waiting.len(), notices.untold.len()), (filled, 2));
        let told = told(&mut notices);
        assert_eq!(
            told[filled..],
            [(b"\0ends".to_vec(), Origin::Applied), (b"\x01stays".to_vec(), Origin::Applied)]
        );
        assert_eq!(notices.held, 0);
        notices.put_change(change(true, b"next"), None, Origin::Applied);
        assert!(!notices.is_empty());
    }

    #[test]
    fn order_is_kept_while_something_is_untold() {
        let mut notices = Notices::default();
        fill(&mut notices, Origin::Applied);
        notices.put_change(change(true, b"a"), None, Origin::Applied);
        while notices.take().is_some() {}
        // There is room again, but this change must not be delivered before the deferred one.
        notices.put_change(change(false, b"a"), None, Origin::Applied);
        assert_eq!(told(&mut notices), []);
    }

    #[test]
    fn a_pipe_that_goes_ends_what_the_program_has_heard_of() {
        let mut notices = Notices::default();
        let manual = |pipe| Origin::Manual(Some(pipe));
        let filled = fill(&mut notices, manual(A));
        notices.put_change(change(true, b"unheard"), None, manual(A));
        notices.put_change(change(false, b"heard"), None, manual(A));
        notices.put_change(change(true, b"other"), None, manual(B));
        notices.forget(A);
        notices.put_end(A, b"filler");
        notices.put_end(A, b"unheard");
        assert!(notices.forget_some(A));
        let told = told(&mut notices);
        assert!(told[..filled].iter().all(|(_, origin)| *origin == Origin::Manual(None)));
        let gone = |topic: &[u8]| (topic.to_vec(), Origin::Manual(None));
        assert_eq!(told[filled..], [gone(b"\0filler"), gone(b"\0heard"), (b"\x01other".to_vec(), manual(B))]);
    }

    #[test]
    fn messages_of_a_peer_are_counted_until_they_are_taken() {
        let mut notices = Notices::default();
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
        assert_eq!(notices.take().map(|(_, origin)| origin), Some(Origin::Message(None)));
    }
}
