//! Shared state of the two ends of a chain: the counters, the first node, and the ring of finished
//! segments.
//!
//! A chain is a queue between a socket and a peer: linked nodes of bytes in segments of memory
//! (`segment`). The producer counts messages and bytes together in one word, `tail`. The consumer
//! has a word for each count: `head` for bytes, `credited` for messages.
//!
//! The word after `Relaxed:` names the reason why an access needs no ordering.
//! docs/develop/memory-ordering.md has the complete arguments:
//!
//! | word | reason |
//! |---|---|
//! | own | Only one thread writes the value, and the same thread loads it. |
//! | number | No thread reads or frees memory, or wakes another, because of the value. |
//! | behind | The value was stored before a Release store, and is loaded after its Acquire load. |
//! | alone | Only one thread has the object. |

use super::parcel;
use super::recycle::RecycleRing;
use super::segment::{self, Node, Position};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

/// Number of bits for the byte count in a tail word. The message count has the other bits.
pub(super) const BYTE_BITS: u32 = 44;
const BYTE_MASK: u64 = (1 << BYTE_BITS) - 1;
const MESSAGE_MASK: u64 = (1 << (64 - BYTE_BITS)) - 1;

/// Limit for the bytes between the head and the appended bytes: half of the range of the byte count
/// in a tail word. Producers refuse to append beyond it.
pub(super) const MOST_BYTES: u64 = 1 << (BYTE_BITS - 1);

/// Below this many bytes, the message count of a tail word cannot wrap around, because each message
/// takes at least two bytes.
pub(super) const COUNTABLE: u64 = 2 << (64 - BYTE_BITS);

/// Packs both counts into a tail word. The counts themselves have 64 bits and only grow. The
/// word holds them modulo 2^20 messages and 2^44 bytes, so only differences of counts are valid:
/// differences in bytes up to `MOST_BYTES`, and differences in messages within `COUNTABLE` bytes.
#[inline(always)]
pub(super) fn pack(messages: u64, bytes: u64) -> u64 {
    (messages << BYTE_BITS) | (bytes & BYTE_MASK)
}

/// Returns the number of bytes that the word is ahead of the count `of`.
#[inline(always)]
pub(super) fn bytes_ahead(word: u64, of: u64) -> u64 {
    word.wrapping_sub(of) & BYTE_MASK
}

/// Returns the number of bytes that the count `of` is ahead of the word.
#[inline(always)]
pub(super) fn bytes_behind(word: u64, of: u64) -> u64 {
    of.wrapping_sub(word) & BYTE_MASK
}

/// Returns the number of messages that the word is ahead of the count `of`.
#[inline(always)]
pub(super) fn messages_ahead(word: u64, of: u64) -> u64 {
    (word >> BYTE_BITS).wrapping_sub(of) & MESSAGE_MASK
}

/// Returns the number of messages that the count `of` is ahead of the word.
#[inline(always)]
pub(super) fn messages_behind(word: u64, of: u64) -> u64 {
    of.wrapping_sub(word >> BYTE_BITS) & MESSAGE_MASK
}

/// The part of a chain that both handles hold. It takes three cache lines:
///
/// | line | fields | written by |
/// |---|---|---|
/// | 1 | `tail`, `published`, `counters` | the producer |
/// | 2 | the rarely used fields, `first` to `half_closed` | either end, rarely |
/// | 3 | `head`, `credited`, `extra` | the consumer |
///
/// The second line keeps `tail` and `head` apart, because the prefetcher of x86 fetches lines in
/// pairs. A socket with many peers has two of these structs for each peer, so they must be small.
/// The struct starts at a line because of its allocation. It ends one word before the end of a
/// line, where the allocator has its own word about the next block.
#[repr(C)]
pub(super) struct SharedChain {
    /// Published messages and bytes, packed. Written by the producer (Release), read by the
    /// consumer (Acquire).
    // Relaxed: own, for the producer. For others a number: the consumer only asks whether there is
    // more, and a probe only shows the count. Alone in `free_all`.
    pub(super) tail: Word<0>,
    /// Published messages, in 64 bits. Written before `tail`. No thread accesses memory because of
    /// it.
    // Relaxed: behind `tail`. After an Acquire load of `tail`, it is at least the message count of
    // that `tail`.
    pub(super) published: Word<0>,
    /// The producer's other counters; see `ProducerCounters`.
    pub(super) counters: ProducerCounters,
    /// The first node. Null while there is no node. The producer sets it before the first
    /// publication. A dropped consumer that has read sets this to its oldest node.
    // Relaxed: behind `tail`, for a consumer that starts to read. Later alone: one end is gone
    // (ordered by `Handle::drop`), or one thread owns both ends.
    pub(super) first: AtomicPtr<Node>,
    /// Position in the node `first` where a dropped consumer stopped. Null if it had not begun to
    /// read.
    // Relaxed: alone. The consumer has ended, and `Handle::drop` orders this store before the loads
    // of the other thread.
    pub(super) stopped: AtomicPtr<u8>,
    /// Finished segments on their way back to the producer.
    pub(super) ring: RecycleRing,
    /// Number of handles and probes that keep this memory alive.
    holders: AtomicU32,
    /// The two sides that the chain connects.
    pub(super) kind: ChainKind,
    /// True if one of the two handles is gone.
    half_closed: AtomicBool,
    _apart: [u8; APART],
    /// Bytes that the consumer has finished. Written by the consumer (Release). A probe reads it
    /// with Acquire. The producer uses only the amount.
    // Relaxed: number, for the producer, because finished memory returns through the ring, which
    // has the ordering. Alone in `free_all`.
    pub(super) head: Word<0>,
    /// Messages that the consumer has finished. Written by the consumer (Release), read by the
    /// producer (Acquire).
    pub(super) credited: Word<0>,
    /// Additional size of the bodies of finished parcels on the wire, compared with their bytes in
    /// the chain (see `parcel`). Written before `head`. Only an amount.
    // Relaxed: number, for statistics.
    pub(super) extra: Word<32>,
}

/// The producer's other counters, which are rarely written. They share a cache line with `tail` and
/// `published`.
#[repr(C)]
pub(super) struct ProducerCounters {
    /// Messages dropped because there was no room or no memory.
    // Relaxed: own, for the producer. A number to other threads.
    pub(super) dropped: Word<0>,
    /// Number of times that the producer found the queue full and tried to make room: by a flush to
    /// the peer, or by a look at the credit.
    // Relaxed: own, for the producer. A number to other threads.
    pub(super) full: Word<0>,
    /// Messages that bypassed this chain: written directly to the peer, or sent from a log.
    /// Messages that the log or this chain also counts are subtracted, so this count may wrap
    /// around below 0.
    // Relaxed: own, for the producer. A number to other threads.
    pub(super) messages: Word<0>,
    /// Bytes of these messages.
    // Relaxed: own, for the producer. A number to other threads.
    pub(super) bytes: Word<0>,
    /// Limit for messages in the queue. 0 for unlimited.
    // Relaxed: own, for the producer. A number to other threads.
    pub(super) limit: Word<8>,
}

impl ProducerCounters {
    /// Adds to a counter that only the calling thread writes.
    #[inline(always)]
    pub(super) fn add(word: &Word<0>, number: u64) {
        // Relaxed: own. Only the calling thread writes it.
        word.0.store(word.0.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }
}

/// The two sides that a chain connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainKind {
    /// A socket and the network.
    Wire,
    /// Two sockets of one process. The owners of the two sockets use its ends. Large bodies travel
    /// as parcels.
    Inproc,
}

impl ChainKind {
    /// True if frames may be parcels: short frames that hold a message instead of its body.
    #[inline]
    pub(super) fn has_parcels(self) -> bool {
        self == ChainKind::Inproc
    }

    /// True if large segments return to the pool of memory blocks instead of the ring. Under loom,
    /// all segments use the ring, so that the models check it.
    pub(super) fn circulates(self) -> bool {
        self == ChainKind::Inproc && !cfg!(loom)
    }
}

/// A counter word with `APART` unused bytes after it. The parameter is independent of the
/// constant `APART`.
#[repr(C)]
pub(super) struct Word<const APART: usize>(pub(super) AtomicU64, [u8; APART]);

impl<const APART: usize> Word<APART> {
    fn new(word: u64) -> Self {
        Word(AtomicU64::new(word), [0; APART])
    }
}

const LINE: usize = 64;
/// Size of the rarely used fields of [`SharedChain`].
const SELDOM: usize = 2 * size_of::<AtomicPtr<Node>>()
    + size_of::<RecycleRing>()
    + size_of::<AtomicU32>()
    + size_of::<ChainKind>()
    + size_of::<AtomicBool>();
/// Number of unused bytes in the cache line of the rarely used fields. (The types of loom are
/// larger than a line.)
const APART: usize = LINE.saturating_sub(SELDOM);
#[cfg(not(loom))]
const _: () =
    assert!(std::mem::offset_of!(SharedChain, head) == 2 * LINE && size_of::<SharedChain>() == 3 * LINE - 8);

impl SharedChain {
    /// Returns both handles of an empty chain without segments.
    pub(super) fn pair(kind: ChainKind) -> [Handle; 2] {
        let (messages, bytes) = start();
        let shared = SharedChain {
            tail: Word::new(pack(messages, bytes)),
            published: Word::new(messages),
            counters: ProducerCounters {
                dropped: Word::new(0),
                full: Word::new(0),
                messages: Word::new(0),
                bytes: Word::new(0),
                limit: Word::new(0),
            },
            first: AtomicPtr::new(std::ptr::null_mut()),
            stopped: AtomicPtr::new(std::ptr::null_mut()),
            ring: RecycleRing::new(),
            holders: AtomicU32::new(2),
            kind,
            half_closed: AtomicBool::new(false),
            _apart: [0; APART],
            head: Word::new(bytes),
            credited: Word::new(messages),
            extra: Word::new(0),
        };
        let layout = SharedChain::layout();
        // SAFETY: the layout is not empty.
        let place = unsafe { alloc(layout) }.cast::<SharedChain>();
        let Some(place) = NonNull::new(place) else { handle_alloc_error(layout) };
        // SAFETY: just allocated for it.
        unsafe { place.write(shared) };
        [Handle(place), Handle(place)]
    }

    /// Returns the layout, aligned to a cache line.
    fn layout() -> Layout {
        let own = Layout::new::<SharedChain>();
        own.align_to(LINE).unwrap_or(own)
    }
}

/// One of the two handles on the shared state. Works like an `Arc`, but an `Arc` would put its
/// counts on an extra line, and there are at most two handles.
pub(super) struct Handle(NonNull<SharedChain>);

// SAFETY: a handle is a shared reference to atomics and to segments that pass between threads.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// True if both handles belong to the same chain.
    pub(super) fn is_same_chain(&self, other: &Handle) -> bool {
        self.0 == other.0
    }
}

impl Deref for Handle {
    type Target = SharedChain;

    #[inline(always)]
    fn deref(&self) -> &SharedChain {
        // SAFETY: freed with the last holder, and this handle is a holder.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // AcqRel: the actions of each side come before the contents are freed. The side that goes
        // first must not access the contents afterwards.
        if self.half_closed.swap(true, Ordering::AcqRel) {
            // SAFETY: the other handle is gone, and this happens once.
            unsafe { self.free_all() };
        }
        // SAFETY: this handle is one of the holders, and is not used afterwards.
        unsafe { SharedChain::release(self.0) };
    }
}

/// Reads the counters of a chain from any thread, even after both ends are gone. A probe does not
/// keep the contents of the chain alive.
pub struct Probe(NonNull<SharedChain>);

// SAFETY: it reads atomics, in memory that lives as long as the probe.
unsafe impl Send for Probe {}
// SAFETY: as above.
unsafe impl Sync for Probe {}

impl Handle {
    /// Returns a probe for the counters.
    pub(super) fn probe(&self) -> Probe {
        // Relaxed: behind, as with any reference count: this handle is itself one of the
        // references.
        self.holders.fetch_add(1, Ordering::Relaxed);
        Probe(self.0)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: a probe is one of the holders, and is not used afterwards.
        unsafe { SharedChain::release(self.0) };
    }
}

/// The counters of a chain. Bytes are those of whole frames, with their headers. A finished parcel
/// counts with its size on the wire, a queued parcel with its size in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainCounts {
    /// Messages that the producer published, or that bypassed the chain.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages that were published and not credited by the consumer.
    pub queued: u64,
    /// Bytes of these messages.
    pub queued_bytes: u64,
    /// Messages dropped because there was no room or no memory.
    pub dropped: u64,
    /// Number of times that the producer found the queue full and tried to make room.
    pub full: u64,
    /// Limit for messages in the queue. 0 for unlimited.
    pub limit: u64,
}

impl Probe {
    /// Returns the current counters. Concurrent changes may or may not be included.
    pub fn counts(&self) -> ChainCounts {
        // SAFETY: a probe is one of the holders.
        let shared = unsafe { self.0.as_ref() };
        // Acquire, the consumer's counts first: pairs with the Release in `Consumer::credit`. The
        // finished messages were published before, so the loads below see them.
        let head = shared.head.0.load(Ordering::Acquire);
        let credited = shared.credited.0.load(Ordering::Acquire);
        let published = shared.published.0.load(Ordering::Relaxed);
        let queued_bytes = bytes_ahead(shared.tail.0.load(Ordering::Relaxed), head);
        let [messages, bytes, dropped, full] = [
            &shared.counters.messages,
            &shared.counters.bytes,
            &shared.counters.dropped,
            &shared.counters.full,
        ]
        .map(|word| word.0.load(Ordering::Relaxed));
        let (first, first_byte) = start();
        let extra = shared.extra.0.load(Ordering::Relaxed);
        ChainCounts {
            messages: published.wrapping_sub(first).wrapping_add(messages),
            bytes: head
                .wrapping_add(queued_bytes)
                .wrapping_sub(first_byte)
                .wrapping_add(extra)
                .wrapping_add(bytes),
            queued: published.wrapping_sub(credited),
            queued_bytes,
            dropped,
            full,
            limit: shared.counters.limit.0.load(Ordering::Relaxed),
        }
    }
}

/// Returns the counts at which a new handle starts: messages and bytes. Tests start just below the
/// wrap-around of the tail word.
pub(super) fn start() -> (u64, u64) {
    if cfg!(test) { (MESSAGE_MASK - 40, BYTE_MASK - 1500) } else { (0, 0) }
}

impl SharedChain {
    /// Drops the messages in the parcels that were published and not read. All such parcels are in
    /// the nodes from `first` on.
    ///
    /// # Safety
    /// Both ends are gone, and `first` is a node.
    unsafe fn drop_parcels(&self, first: *mut Node) {
        let unread = bytes_ahead(self.tail.0.load(Ordering::Relaxed), self.head.0.load(Ordering::Relaxed));
        let stopped = self.stopped.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let at = if stopped.is_null() { unsafe { (*first).start } } else { stopped };
        // SAFETY: exactly `unread` bytes are published after the place where the consumer stopped,
        // or where it would have begun. When a `FrameReader` is dropped, it gives credit for all
        // that it has read, and then stores its position. So `head` is the byte count at `at`.
        unsafe { parcel::drop_all(Position { node: first, at }, unread) };
    }
}

impl SharedChain {
    /// Frees everything in the chain.
    ///
    /// # Safety
    /// Both ends are gone, and only probes access the chain. Called only once.
    unsafe fn free_all(&self) {
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() && self.kind.has_parcels() {
            // SAFETY: both ends are gone.
            unsafe { self.drop_parcels(first) };
        }
        // SAFETY: both ends are gone. `first` is the oldest node that the consumer has not released
        // (null: there never was a node), and all later nodes hang on it. `Handle::drop` made the
        // other thread's writes visible.
        unsafe {
            if !first.is_null() {
                segment::free_chain(first);
            }
            self.ring.free_all();
        }
    }

    /// Removes a holder. The last one frees the memory.
    ///
    /// # Safety
    /// The caller is a holder, and does not access the state afterwards.
    unsafe fn release(place: NonNull<SharedChain>) {
        // SAFETY: the caller is a holder.
        let holders = unsafe { &place.as_ref().holders };
        // AcqRel: the actions of each holder come before the memory is freed.
        if holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: written by `SharedChain::pair`, and this was the last holder.
            unsafe { place.drop_in_place() };
            // SAFETY: allocated there with this layout.
            unsafe { dealloc(place.as_ptr().cast(), SharedChain::layout()) };
        }
    }
}
