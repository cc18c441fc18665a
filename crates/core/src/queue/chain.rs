//! What both ends of a chain share: the counters, the first node, and the ring of finished
//! segments.

use super::parcel;
use super::pool::Ring;
use super::segment::{self, Node, Position};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

pub(super) const BYTE_BITS: u32 = 44;
const BYTE_MASK: u64 = (1 << BYTE_BITS) - 1;
const MESSAGE_MASK: u64 = (1 << (64 - BYTE_BITS)) - 1;

/// Most bytes between the head and what was appended: half of what the tail word tells apart.
/// Producers refuse what would be more.
pub(super) const MOST_BYTES: u64 = 1 << (BYTE_BITS - 1);

/// Among fewer bytes than this are fewer messages than the tail word can count, as each takes two
/// at least.
pub(super) const COUNTABLE: u64 = 2 << (64 - BYTE_BITS);

/// Both counts of a tail word. They grow for ever in 64 bits; the word holds them modulo 2^20
/// messages and 2^44 bytes, so only distances mean something: those in bytes up to `MOST_BYTES`,
/// those in messages within `COUNTABLE` bytes.
#[inline(always)]
pub(super) fn pack(messages: u64, bytes: u64) -> u64 {
    (messages << BYTE_BITS) | (bytes & BYTE_MASK)
}

/// How many bytes the word is ahead of the count `of`.
#[inline(always)]
pub(super) fn bytes_ahead(word: u64, of: u64) -> u64 {
    word.wrapping_sub(of) & BYTE_MASK
}

/// How many bytes the count `of` is ahead of the word.
#[inline(always)]
pub(super) fn bytes_behind(word: u64, of: u64) -> u64 {
    of.wrapping_sub(word) & BYTE_MASK
}

/// How many messages the word is ahead of the count `of`.
#[inline(always)]
pub(super) fn messages_ahead(word: u64, of: u64) -> u64 {
    (word >> BYTE_BITS).wrapping_sub(of) & MESSAGE_MASK
}

/// How many messages the count `of` is ahead of the word.
#[inline(always)]
pub(super) fn messages_behind(word: u64, of: u64) -> u64 {
    of.wrapping_sub(word >> BYTE_BITS) & MESSAGE_MASK
}

/// The part of a chain that both handles hold. What is seldom touched lies where it keeps the two
/// words apart, as the prefetcher of x86 fetches lines in pairs; a socket with many peers has two
/// of these for each. So each takes just three lines: it begins with one by the way it is
/// allocated, and ends a word before the end of one, where the allocator has its own word about the
/// next block.
#[repr(C)]
pub(super) struct Shared {
    /// Published messages and bytes, packed. Written by the producer (Release), read by the
    /// consumer (Acquire).
    // Relaxed: own, for the producer; a number, where the consumer only asks whether there is more.
    pub(super) tail: Word<0>,
    /// Published messages. Written before `tail`; only a number.
    // Relaxed: behind `tail`: no fewer than that counts.
    pub(super) published: Word<0>,
    /// What the producer has to tell besides; see `Aside`.
    pub(super) aside: Aside,
    /// The first node; null while there is none. Set by the producer before the first publication,
    /// moved on by a consumer that ends.
    // Relaxed: behind `tail`, for the consumer that begins; alone, once an end is gone
    // (`Handle::drop`) or both are in one hand.
    pub(super) first: AtomicPtr<Node>,
    /// Where a consumer that has ended stopped in that node; null if it had not begun.
    // Relaxed: alone: the consumer has ended, and `Handle::drop` passes it on.
    pub(super) stopped: AtomicPtr<u8>,
    /// Finished segments on their way back to the producer.
    pub(super) ring: Ring,
    /// How many handles and probes there are, for which this memory stays.
    holders: AtomicU32,
    /// What the chain is between.
    pub(super) kind: Kind,
    /// One of the two handles is gone.
    left: AtomicBool,
    _apart: [u8; APART],
    /// Bytes that the consumer is done with. Written by the consumer (Release), read by the
    /// producer where only a number is wanted.
    // Relaxed: number, for the producer: memory comes back through the ring, which has the order;
    // alone, at the end.
    pub(super) head: Word<0>,
    /// Messages that it is done with. Written by the consumer (Release), read by the producer
    /// (Acquire).
    pub(super) credited: Word<0>,
    /// What the bodies of the parcels among them have beyond their bytes here, see `parcel`.
    /// Written before `head`; only a number.
    // Relaxed: number, for statistics.
    pub(super) extra: Word<32>,
}

/// What the producer has to tell that is not in the chain. On its own line, and seldom written.
#[repr(C)]
pub(super) struct Aside {
    /// Messages that it had no room or no memory for.
    // Relaxed: own, the producer's; a number to others.
    pub(super) dropped: Word<0>,
    /// How often it has found the queue full, and has tried the peer.
    // Relaxed: own, the producer's; a number to others.
    pub(super) full: Word<0>,
    /// Messages that went to the peer another way. They wrap: what is counted elsewhere, too, is
    /// taken off.
    // Relaxed: own, the producer's; a number to others.
    pub(super) messages: Word<0>,
    /// Their bytes.
    // Relaxed: own, the producer's; a number to others.
    pub(super) bytes: Word<0>,
    /// Most messages that may be there; 0 is any number.
    // Relaxed: own, the producer's; a number to others.
    pub(super) limit: Word<8>,
}

impl Aside {
    /// Adds to one of them, which the calling thread alone writes.
    #[inline(always)]
    pub(super) fn add(word: &Word<0>, number: u64) {
        // Relaxed: own.
        word.0.store(word.0.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }
}

/// What a chain is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A socket and the network.
    Wire,
    /// Two sockets of one process: two threads that are both at work use its ends, and it has
    /// parcels.
    Inproc,
}

impl Kind {
    /// Whether frames may be parcels.
    #[inline]
    pub(super) fn has_parcels(self) -> bool {
        self == Kind::Inproc
    }

    /// Whether large segments do not come back through the ring, but circulate through the pool of
    /// blocks. (The models look at the ring.)
    pub(super) fn circulates(self) -> bool {
        self == Kind::Inproc && !cfg!(loom)
    }
}

/// A counter word with `APART` unused bytes behind it.
#[repr(C)]
pub(super) struct Word<const APART: usize>(pub(super) AtomicU64, [u8; APART]);

impl<const APART: usize> Word<APART> {
    fn new(word: u64) -> Self {
        Word(AtomicU64::new(word), [0; APART])
    }
}

const LINE: usize = 64;
/// Size of what is seldom touched.
const SELDOM: usize = 2 * size_of::<AtomicPtr<Node>>()
    + size_of::<Ring>()
    + size_of::<AtomicU32>()
    + size_of::<Kind>()
    + size_of::<AtomicBool>();
/// What its line has left. (The model's types are larger.)
const APART: usize = LINE.saturating_sub(SELDOM);
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Shared, head) == 2 * LINE && size_of::<Shared>() == 3 * LINE - 8);

impl Shared {
    /// Both handles of an empty chain without any segment.
    pub(super) fn pair(kind: Kind) -> [Handle; 2] {
        let (messages, bytes) = start();
        let shared = Shared {
            tail: Word::new(pack(messages, bytes)),
            published: Word::new(messages),
            aside: Aside {
                dropped: Word::new(0),
                full: Word::new(0),
                messages: Word::new(0),
                bytes: Word::new(0),
                limit: Word::new(0),
            },
            first: AtomicPtr::new(std::ptr::null_mut()),
            stopped: AtomicPtr::new(std::ptr::null_mut()),
            ring: Ring::new(),
            holders: AtomicU32::new(2),
            kind,
            left: AtomicBool::new(false),
            _apart: [0; APART],
            head: Word::new(bytes),
            credited: Word::new(messages),
            extra: Word::new(0),
        };
        let layout = Shared::layout();
        // SAFETY: the layout is not empty.
        let place = unsafe { alloc(layout) }.cast::<Shared>();
        let Some(place) = NonNull::new(place) else { handle_alloc_error(layout) };
        // SAFETY: just allocated for it.
        unsafe { place.write(shared) };
        [Handle(place), Handle(place)]
    }

    /// At the beginning of a line.
    fn layout() -> Layout {
        let own = Layout::new::<Shared>();
        own.align_to(LINE).unwrap_or(own)
    }
}

/// One of the two handles on what both ends share. As `Arc`, but an `Arc` would put its counts on a
/// line of their own, and there are never more than two.
pub(super) struct Handle(NonNull<Shared>);

// SAFETY: a handle is a shared reference, and what it refers to consists of atomics, and of
// segments that pass between threads.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Whether both belong to the same chain.
    pub(super) fn same(&self, other: &Handle) -> bool {
        self.0 == other.0
    }
}

impl Deref for Handle {
    type Target = Shared;

    #[inline(always)]
    fn deref(&self) -> &Shared {
        // SAFETY: freed with the last handle.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // AcqRel: what either side has done comes before the end. The first one to go may no longer
        // look at it afterwards.
        if self.left.swap(true, Ordering::AcqRel) {
            // SAFETY: the other handle is gone, and this happens once.
            unsafe { self.free_all() };
        }
        // SAFETY: this handle is one of the holders, and is not used afterwards.
        unsafe { Shared::let_go(self.0) };
    }
}

/// A look at the counts of a chain from outside, also when its ends are gone. It keeps nothing of
/// what is in the chain.
pub(crate) struct Probe(NonNull<Shared>);

// SAFETY: it reads atomics, in memory that stays as long as it does.
unsafe impl Send for Probe {}
// SAFETY: as above.
unsafe impl Sync for Probe {}

impl Handle {
    /// A look at the counts from outside.
    pub(super) fn probe(&self) -> Probe {
        // Relaxed: behind, as with any count of references: this handle is one of them.
        self.holders.fetch_add(1, Ordering::Relaxed);
        Probe(self.0)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: a probe is one of the holders, and is not used afterwards.
        unsafe { Shared::let_go(self.0) };
    }
}

/// The counts of a chain at one moment. Bytes are those of whole frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Published by the producer, or gone to the peer another way.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Published, and not credited by the consumer.
    pub(crate) queued: u64,
    pub(crate) queued_bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) full: u64,
    pub(crate) limit: u64,
}

impl Probe {
    /// The counts now. What happens meanwhile is in it or not.
    pub(crate) fn counts(&self) -> Counts {
        // SAFETY: a probe is one of the holders.
        let shared = unsafe { self.0.as_ref() };
        // Acquire, the consumer's counts first: pairs with the Release in `Consumer::credit`. What
        // it is done with was published before, so it is seen below.
        let head = shared.head.0.load(Ordering::Acquire);
        let credited = shared.credited.0.load(Ordering::Acquire);
        let published = shared.published.0.load(Ordering::Relaxed);
        let queued_bytes = bytes_ahead(shared.tail.0.load(Ordering::Relaxed), head);
        let [messages, bytes, dropped, full] =
            [&shared.aside.messages, &shared.aside.bytes, &shared.aside.dropped, &shared.aside.full]
                .map(|word| word.0.load(Ordering::Relaxed));
        let (first, first_byte) = start();
        let extra = shared.extra.0.load(Ordering::Relaxed);
        Counts {
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
            limit: shared.aside.limit.0.load(Ordering::Relaxed),
        }
    }
}

/// The counts that a fresh handle starts from: messages, bytes. Tests start just below the
/// wrap-around of the tail word.
pub(super) fn start() -> (u64, u64) {
    if cfg!(test) { (MESSAGE_MASK - 40, BYTE_MASK - 1500) } else { (0, 0) }
}

impl Shared {
    /// Drops the messages of the parcels that were published and not read; all that is in the nodes
    /// from `first` on is.
    ///
    /// # Safety
    /// Both ends are gone, and `first` is a node.
    unsafe fn drop_parcels(&self, first: *mut Node) {
        let unread = bytes_ahead(self.tail.0.load(Ordering::Relaxed), self.head.0.load(Ordering::Relaxed));
        let stopped = self.stopped.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let at = if stopped.is_null() { unsafe { (*first).start } } else { stopped };
        // SAFETY: that many bytes are published behind the place where the consumer stopped, which
        // it has told with exact credit.
        unsafe { parcel::drop_all(Position { node: first, at }, unread) };
    }
}

impl Shared {
    /// Frees all that is in the chain.
    ///
    /// # Safety
    /// Both ends are gone, and only probes look at it. To be called once.
    unsafe fn free_all(&self) {
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() && self.kind.has_parcels() {
            // SAFETY: both ends are gone.
            unsafe { self.drop_parcels(first) };
        }
        // SAFETY: both ends are gone. `first` is the oldest node that the consumer has not given up
        // (null: there never was one), and all later ones hang on it. `Handle::drop` made the other
        // thread's writes visible.
        unsafe {
            if !first.is_null() {
                segment::free_chain(first);
            }
            self.ring.free_all();
        }
    }

    /// A holder goes, and with the last one the memory.
    ///
    /// # Safety
    /// The caller is a holder, and does not look at it afterwards.
    unsafe fn let_go(place: NonNull<Shared>) {
        // SAFETY: the caller is a holder.
        let holders = unsafe { &place.as_ref().holders };
        // AcqRel: what each holder has done comes before the end.
        if holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: written by `Shared::pair`, and no holder is left.
            unsafe { place.drop_in_place() };
            // SAFETY: allocated there with this layout.
            unsafe { dealloc(place.as_ptr().cast(), Shared::layout()) };
        }
    }
}
