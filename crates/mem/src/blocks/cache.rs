//! The free blocks: a few of each size in every thread, the others in the depot.

use super::ring::Ring;
use super::thread_slots;
use super::{CLASSES, class_size, layout};
use crate::cpu::prefetch_to_write;
use crate::thread::on_exit;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Limit in bytes for the blocks of one size that a thread keeps. A thread may always keep two
/// blocks.
const KEPT_BY_THREAD: usize = 512 * 1024;
/// Limit for the number of blocks of one size that a thread keeps. Together with the length they
/// fill a power of two of bytes.
const KEPT_BLOCKS: usize = 31;
/// Limits for the blocks and bytes of a batch.
const BATCH_BLOCKS: usize = KEPT_BLOCKS / 2;
const BATCH_BYTES: usize = KEPT_BY_THREAD / 2;
/// The first class whose next block is prefetched: the first of at least 4 KiB.
const FIRST_PREFETCHED: usize = {
    let mut class = 0;
    while class_size(class) < 4096 {
        class += 1;
    }
    class
};
/// Limits of the depot for one size, in batches and in bytes.
const BATCHES: usize = 64;
const KEPT_BY_DEPOT: usize = 4 * 1024 * 1024;

const fn between(n: usize, least: usize, most: usize) -> usize {
    if n < least {
        least
    } else if n > most {
        most
    } else {
        n
    }
}

/// Returns the number of blocks of a class that a thread keeps.
const fn kept(class: usize) -> usize {
    between(KEPT_BY_THREAD / class_size(class), 2, KEPT_BLOCKS)
}

/// Returns the number of these blocks that form a batch.
const fn batch(class: usize) -> usize {
    between(BATCH_BYTES / class_size(class), 1, BATCH_BLOCKS)
}

/// Returns the number of batches that the depot keeps.
const fn kept_by_depot(class: usize) -> usize {
    between(KEPT_BY_DEPOT / (batch(class) * class_size(class)), 1, BATCHES)
}

/// Free blocks of one class that their holders gave up. The length comes first, so that it shares a
/// cache line with the first blocks.
#[derive(Clone, Copy)]
#[repr(C)]
struct Batch {
    len: usize,
    blocks: [*mut u8; BATCH_BLOCKS],
}

// SAFETY: the blocks in a batch are free memory that belongs to the batch alone.
unsafe impl Send for Batch {}

impl Batch {
    fn free(&self, class: usize) {
        if let Some(layout) = layout(class_size(class)) {
            for &block in &self.blocks[..self.len] {
                // SAFETY: all blocks of a class were allocated with this layout, and these belong
                // to the batch alone.
                unsafe { std::alloc::dealloc(block, layout) };
            }
        }
    }
}

/// The batches of one class that no thread holds.
struct Depot {
    batches: Ring<Batch, BATCHES>,
    /// `Ring::pushed` at the last check for sizes that are no longer in use.
    // Relaxed: number: blocks are freed a little sooner or later.
    seen: AtomicUsize,
}

struct Depots([Depot; CLASSES]);

static DEPOTS: Depots = Depots::new();

impl Depots {
    const fn new() -> Self {
        Depots([const { Depot { batches: Ring::new(), seen: AtomicUsize::new(0) } }; CLASSES])
    }

    /// Keeps a batch, or frees it if there are enough.
    fn deposit(&self, class: usize, batch: &Batch) {
        let batches = &self.0[class].batches;
        if batches.len() >= kept_by_depot(class) || batches.push(*batch).is_err() {
            batch.free(class);
        } else if batches.pushed().is_multiple_of(BATCHES) {
            self.free_unused();
        }
    }

    /// Takes the oldest batch out.
    fn withdraw(&self, class: usize) -> Option<Batch> {
        self.0[class].batches.pop()
    }

    /// Frees the blocks of all sizes that the depot has not received since the last call.
    #[cold]
    fn free_unused(&self) {
        for (class, depot) in self.0.iter().enumerate() {
            let pushed = depot.batches.pushed();
            if depot.seen.swap(pushed, Relaxed) == pushed {
                while let Some(batch) = depot.batches.pop() {
                    batch.free(class);
                }
            }
        }
    }
}

/// A thread's free blocks of one class. The last one is the most recently freed block. Uses cells
/// to avoid tracking borrows: no other code runs while they change.
struct Stack {
    blocks: [Cell<*mut u8>; KEPT_BLOCKS],
    len: Cell<u32>,
    /// Limit for the kept blocks. 0 before the thread's cache is in use, and when the thread exits.
    most: Cell<u32>,
}

impl Stack {
    const fn new(most: u32) -> Stack {
        Stack {
            blocks: [const { Cell::new(std::ptr::null_mut()) }; KEPT_BLOCKS],
            len: Cell::new(0),
            most: Cell::new(most),
        }
    }

    #[inline(always)]
    fn pop(&self) -> Option<NonNull<u8>> {
        let len = self.len.get().checked_sub(1)?;
        self.len.set(len);
        NonNull::new(self.blocks.get(len as usize)?.get())
    }

    /// Prefetches the next block, which has been in another core's cache.
    #[inline(always)]
    fn prefetch(&self) {
        if let Some(next) = self.blocks.get((self.len.get() as usize).wrapping_sub(1)) {
            prefetch_to_write(next.get());
        }
    }

    /// Pushes a block. Returns false if there is no room.
    #[inline(always)]
    fn push(&self, block: *mut u8) -> bool {
        let len = self.len.get();
        match self.blocks.get(len as usize) {
            Some(place) if len < self.most.get() => {
                place.set(block);
                self.len.set(len + 1);
                true
            }
            _ => false,
        }
    }

    /// Adds a block. If the cache is full, first gives some blocks to the depots.
    fn push_with_room(&self, class: usize, block: *mut u8, depots: &Depots) {
        if self.len.get() >= self.most.get() {
            self.give_up(class, batch(class), depots);
        }
        self.push(block);
    }

    /// Takes a batch from the depot, then a block from that.
    fn refill(&self, class: usize, depots: &Depots) -> Option<NonNull<u8>> {
        let batch = depots.withdraw(class)?;
        for (place, block) in self.blocks.iter().zip(&batch.blocks[..batch.len]) {
            place.set(*block);
        }
        self.len.set(batch.len as u32);
        self.pop()
    }

    /// Gives the oldest `n` blocks to the depot.
    fn give_up(&self, class: usize, n: usize, depots: &Depots) {
        let len = self.len.get() as usize;
        let batch = Batch {
            blocks: std::array::from_fn(|i| if i < n { self.blocks[i].get() } else { std::ptr::null_mut() }),
            len: n,
        };
        for i in n..len {
            self.blocks[i - n].set(self.blocks[i].get());
        }
        self.len.set((len - n) as u32);
        depots.deposit(class, &batch);
    }

    /// Gives all blocks to the depot.
    fn give_all(&self, class: usize, depots: &Depots) {
        while self.len.get() > 0 {
            self.give_up(class, batch(class).min(self.len.get() as usize), depots);
        }
    }
}

/// The free blocks of one thread.
struct Cache {
    stacks: [Stack; CLASSES],
    age: Cell<CacheState>,
}

/// State of a thread's cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheState {
    New,
    /// The blocks are given back when the thread exits.
    InUse,
    /// The thread is exiting.
    Exiting,
}

impl Cache {
    /// True if the cache keeps blocks. Begins to keep blocks if the cache is new.
    fn is_in_use(&self) -> bool {
        if self.age.get() == CacheState::New {
            self.age.set(if keeps_blocks() && on_exit(give_back) {
                CacheState::InUse
            } else {
                CacheState::Exiting
            });
            if self.age.get() == CacheState::InUse {
                thread_slots::claim();
                for (class, stack) in self.stacks.iter().enumerate() {
                    stack.most.set(kept(class) as u32);
                }
            }
        }
        self.age.get() == CacheState::InUse
    }
}

/// True if threads keep free blocks at all.
#[cfg(not(feature = "fuzzing"))]
fn keeps_blocks() -> bool {
    true
}

// Relaxed: number, for the fuzzer.
#[cfg(feature = "fuzzing")]
static KEEPS_NOTHING: AtomicUsize = AtomicUsize::new(0);

#[cfg(feature = "fuzzing")]
fn keeps_blocks() -> bool {
    KEEPS_NOTHING.load(Relaxed) == 0
}

/// Makes threads that have not kept a free block yet never keep one.
#[cfg(feature = "fuzzing")]
pub fn disable() {
    KEEPS_NOTHING.store(1, Relaxed);
}

/// Gives all blocks back when the thread exits.
fn give_back() {
    CACHE.with(|cache| {
        cache.age.set(CacheState::Exiting);
        thread_slots::release(|class, block| {
            if let Some(stack) = cache.stacks.get(class) {
                stack.push_with_room(class, block, &DEPOTS);
            }
        });
        for (class, stack) in cache.stacks.iter().enumerate() {
            stack.most.set(0);
            stack.give_all(class, &DEPOTS);
        }
    });
}

thread_local! {
    // Without a destructor: see `crate::thread::on_exit`.
    static CACHE: Cache = const { Cache { stacks: [const { Stack::new(0) }; CLASSES], age: Cell::new(CacheState::New) } };
}

/// Returns a free block of a class, if the class exists and this thread can get a block.
#[inline(always)]
pub(super) fn take(class: usize) -> Option<NonNull<u8>> {
    if let Some(block) = thread_slots::take(class) {
        return Some(block);
    }
    let taken = CACHE.with(|cache| {
        let stack = cache.stacks.get(class)?;
        let block = stack.pop();
        if class >= FIRST_PREFETCHED {
            stack.prefetch();
        }
        block
    });
    match taken {
        None => take_from_depot(class),
        block => block,
    }
}

#[cold]
#[inline(never)]
fn take_from_depot(class: usize) -> Option<NonNull<u8>> {
    CACHE.with(|cache| {
        let stack = cache.stacks.get(class)?;
        if cache.is_in_use() { stack.refill(class, &DEPOTS) } else { None }
    })
}

/// Takes a free block of a class. Returns false if the class does not exist, and while the thread
/// exits.
#[inline(always)]
pub(super) fn give(class: usize, block: *mut u8) -> bool {
    thread_slots::give(class, block)
        || CACHE.with(|cache| cache.stacks.get(class).is_some_and(|stack| stack.push(block)))
        || give_to_depot(class, block)
}

#[cold]
#[inline(never)]
fn give_to_depot(class: usize, block: *mut u8) -> bool {
    CACHE.with(|cache| match cache.stacks.get(class) {
        Some(stack) if cache.is_in_use() => {
            stack.push_with_room(class, block, &DEPOTS);
            true
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(class: usize) -> *mut u8 {
        // SAFETY: not empty.
        unsafe { std::alloc::alloc(layout(class_size(class)).unwrap()) }
    }

    fn stack(class: usize) -> Stack {
        Stack::new(kept(class) as u32)
    }

    /// Frees the remaining blocks, so that Miri sees no leak.
    fn empty(depots: &Depots) {
        depots.free_unused();
        depots.free_unused();
        assert!(depots.0.iter().all(|depot| depot.batches.len() == 0));
    }

    #[test]
    fn the_limits_fit_together() {
        for class in 0..CLASSES {
            assert!(kept(class) <= KEPT_BLOCKS && batch(class) <= kept(class).div_ceil(2), "class {class}");
            assert!(kept_by_depot(class) <= BATCHES, "class {class}");
        }
    }

    #[test]
    fn depot_gives_its_oldest_batch_first() {
        let depots = Box::new(Depots::new());
        let class = class_of_64k();
        let (giver, taker) = (stack(class), stack(class));
        let blocks: Vec<_> = (0..200).map(|_| block(class)).collect();
        for &block in &blocks {
            giver.push_with_room(class, block, &depots);
        }
        assert_eq!(depots.0[class].batches.len(), kept_by_depot(class), "the others were freed");
        // The first blocks that were given, with the last of a batch first.
        assert_eq!(taker.refill(class, &depots), NonNull::new(blocks[batch(class) - 1]));
        let taken = taker.len.get() as usize + 1;
        assert_eq!(taken, batch(class));
        assert!((0..taken).all(|n| taker.blocks[n].get() == blocks[n]));
        taker.len.set(taken as u32);
        giver.give_all(class, &depots);
        taker.give_all(class, &depots);
        empty(&depots);
    }

    fn class_of_64k() -> usize {
        super::super::Class::of(64 * 1024).index()
    }

    #[test]
    fn thread_reuses_last_freed_block() {
        let depots = Box::new(Depots::new());
        let stack = stack(0);
        let blocks: Vec<_> = (0..KEPT_BLOCKS + 1).map(|_| block(0)).collect();
        for &block in &blocks {
            stack.push_with_room(0, block, &depots);
        }
        for &block in blocks[batch(0)..].iter().rev() {
            assert_eq!(stack.pop(), NonNull::new(block));
            // Freed with the others at the end.
            depots.deposit(0, &Batch { blocks: [block; BATCH_BLOCKS], len: 1 });
        }
        assert_eq!(stack.pop(), None);
        empty(&depots);
    }

    #[test]
    fn sizes_that_no_thread_gives_any_more_are_freed() {
        let depots = Box::new(Depots::new());
        let one = |class| Batch { blocks: [block(class); BATCH_BLOCKS], len: 1 };
        depots.deposit(3, &one(3));
        for n in 1..2 * BATCHES {
            depots.deposit(5, &one(5));
            assert_eq!(depots.0[3].batches.len(), 1, "after {n}");
            depots.0[5].batches.pop().unwrap().free(5);
        }
        depots.deposit(5, &one(5));
        assert_eq!((depots.0[3].batches.len(), depots.0[5].batches.len()), (0, 1));
        empty(&depots);
    }
}
