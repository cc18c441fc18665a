//! Messages and peers that a socket turned away by its own rules: their numbers, and examples for
//! tools. Examples are kept only if the socket is observed.

use std::sync::OnceLock;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::atomic::{AtomicU32, AtomicU64};
use tautline_queue::sync::{Mutex, lock};

/// Most bytes of an example.
const EXAMPLE: usize = 64;
/// Most topics of a socket that are kept.
const TOPICS: usize = 16;

/// Bit of [`Discards::wanted`]: the topic of the next message.
const PUBLISHED: u32 = 1;
/// Bit of [`Discards::wanted`]: the topic of the next message without a subscription.
const UNMATCHED: u32 = 2;

/// Why a socket discarded a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiscardReason {
    /// It discarded none.
    #[default]
    None,
    /// A REP received a message without an empty delimiter.
    NoDelimiter,
    /// A REQ received a message that is not the reply to its present request.
    StaleReply,
    /// A REQ received a reply without an empty delimiter.
    NoReplyDelimiter,
    /// A peer whose routing id another peer has sent a message.
    RefusedPeer,
    /// A socket of a type without multipart messages received one.
    TooManyParts,
}

impl DiscardReason {
    const ALL: [Self; 6] = [
        Self::None,
        Self::NoDelimiter,
        Self::StaleReply,
        Self::NoReplyDelimiter,
        Self::RefusedPeer,
        Self::TooManyParts,
    ];
}

/// A topic: its first bytes, and its whole length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicExample {
    /// The first bytes.
    pub prefix: Vec<u8>,
    /// Length of the whole topic, or of the whole first part of a message.
    pub length: usize,
}

impl TopicExample {
    fn of(topic: &[u8]) -> Self {
        TopicExample { prefix: topic[..topic.len().min(EXAMPLE)].to_vec(), length: topic.len() }
    }
}

/// Examples for tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examples {
    /// Routing id of the last message whose destination had no peer.
    pub unroutable_id: Vec<u8>,
    /// Last routing id that two peers had.
    pub duplicate_id: Vec<u8>,
    /// Topic of a sent message that no subscription matched.
    pub unmatched: Option<TopicExample>,
    /// Topic of a sent message, and the number of topics that the peers subscribed to at that time.
    pub published: Option<(TopicExample, usize)>,
    /// The first subscriptions of a SUB or XSUB.
    pub subscriptions: Vec<TopicExample>,
}

/// Counters and examples of one socket. The owner writes the counters.
#[derive(Debug, Default)]
pub(crate) struct Discards {
    // Relaxed: own, the owner's; a number to others.
    discarded: AtomicU64,
    // Relaxed: own, the owner's; a number to others.
    reason: AtomicU32,
    // Relaxed: own, the owner's; a number to others.
    duplicates: AtomicU64,
    // Relaxed: own, the owner's; a number to others.
    taken_over: AtomicU64,
    // Relaxed: own, the owner's; a number to others.
    unmatched: AtomicU64,
    /// Examples that a tool asks for: bits.
    // Relaxed: look: the examples are under their lock, and any later message serves as well.
    wanted: AtomicU32,
    examples: OnceLock<Box<Mutex<Examples>>>,
}

/// Adds one to a counter that only the owner writes.
fn count(counter: &AtomicU64) {
    // Relaxed: own, the owner's; a number to others.
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl Discards {
    /// Starts to keep examples, and asks for the first topics.
    pub(crate) fn keep_examples(&self) {
        let _ = self.examples.set(Box::default());
        self.request_topics();
    }

    fn note(&self, note: impl FnOnce(&mut Examples)) {
        if let Some(examples) = self.examples.get() {
            note(&mut lock(examples));
        }
    }

    /// Notes the routing id of a message without a peer.
    pub(super) fn note_unroutable(&self, name: &[u8]) {
        self.note(|examples| {
            examples.unroutable_id.clear();
            examples.unroutable_id.extend_from_slice(name);
        });
    }

    /// Owner: counts a received message that the socket discards.
    #[cold]
    pub(crate) fn count_discarded(&self, reason: DiscardReason) {
        count(&self.discarded);
        self.reason.store(reason as u32, Relaxed);
    }

    /// Owner: counts a peer that is refused because another peer has its routing id.
    #[cold]
    pub(crate) fn count_duplicate(&self, routing_id: &[u8]) {
        count(&self.duplicates);
        self.note(|examples| examples.duplicate_id = routing_id.to_vec());
    }

    /// Owner: counts a peer that loses its routing id to a newer peer.
    #[cold]
    pub(crate) fn count_taken_over(&self, routing_id: &[u8]) {
        count(&self.taken_over);
        self.note(|examples| examples.duplicate_id = routing_id.to_vec());
    }

    /// Owner: counts a message that no subscription matches.
    #[cold]
    pub(crate) fn count_unmatched(&self, topic: &[u8]) {
        count(&self.unmatched);
        if self.wanted.load(Relaxed) & UNMATCHED != 0 {
            self.wanted.fetch_and(!UNMATCHED, Relaxed);
            self.note(|examples| examples.unmatched = Some(TopicExample::of(topic)));
        }
    }

    /// True if a tool asks for the topic of a message.
    #[inline]
    pub(crate) fn wants_topic(&self) -> bool {
        self.wanted.load(Relaxed) & PUBLISHED != 0
    }

    /// Owner: notes the topic of a message, and the number of topics that peers subscribe to.
    #[cold]
    pub(crate) fn note_topic(&self, topic: &[u8], subscribed: usize) {
        self.wanted.fetch_and(!PUBLISHED, Relaxed);
        self.note(|examples| examples.published = Some((TopicExample::of(topic), subscribed)));
    }

    /// Owner: notes the first subscriptions, after `topic` was added to or removed from them.
    pub(crate) fn note_subscriptions<'a>(&self, topics: impl Iterator<Item = &'a [u8]>) {
        self.note(|examples| examples.subscriptions = topics.take(TOPICS).map(TopicExample::of).collect());
    }

    /// Asks for the topic of the next message, and of the next message without a subscription.
    pub(super) fn request_topics(&self) {
        self.wanted.fetch_or(PUBLISHED | UNMATCHED, Relaxed);
    }

    /// Returns the number of discarded messages, and the reason of the last one.
    pub(super) fn discarded(&self) -> (u64, DiscardReason) {
        let reason = DiscardReason::ALL.get(self.reason.load(Relaxed) as usize);
        (self.discarded.load(Relaxed), reason.copied().unwrap_or_default())
    }

    /// Returns the numbers of refused peers, of replaced peers, and of messages without a
    /// subscription.
    pub(super) fn counts(&self) -> [u64; 3] {
        // Relaxed: number, for tools.
        [&self.duplicates, &self.taken_over, &self.unmatched].map(|counter| counter.load(Relaxed))
    }

    /// Returns the examples. A published topic is returned once.
    pub(super) fn take_examples(&self) -> Examples {
        let Some(examples) = self.examples.get() else { return Examples::default() };
        let mut examples = lock(examples);
        Examples { published: examples.published.take(), ..examples.clone() }
    }
}
