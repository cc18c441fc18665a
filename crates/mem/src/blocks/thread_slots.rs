//! The most recently freed small block of each size, at a place that the thread finds without a
//! call.
//!
//! If the library is shared, finding a thread-local value takes a call. The call takes longer than
//! all other work for such a block. The thread pointer takes one instruction. So there is a table
//! of threads by that pointer. A thread whose place is already taken does not use the table.

use super::SMALL;
use crate::cpu::thread_pointer;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// A power of two.
const PLACES: usize = 256;
/// The owner of a free place.
const NOBODY: usize = 0;

/// One thread's blocks, on a cache line.
#[repr(align(64))]
struct ThreadSlot {
    /// The thread's pointer. Two running threads never have the same pointer, so no other thread
    /// touches the blocks.
    // Relaxed: own: only a thread itself writes its number, so a value that another thread finds is
    // not its own. A place changes its owner by `give_up` (Release) and `claim` (Acquire).
    owner: AtomicUsize,
    /// Null if there is no block.
    // Relaxed: own: only the thread that owns the place.
    last: [AtomicPtr<u8>; SMALL.len()],
}

impl ThreadSlot {
    const fn new() -> Self {
        ThreadSlot {
            owner: AtomicUsize::new(NOBODY),
            last: [const { AtomicPtr::new(null_mut()) }; SMALL.len()],
        }
    }
}

struct Table([ThreadSlot; PLACES]);

static TABLE: Table = Table::new();

impl Table {
    const fn new() -> Self {
        Table([const { ThreadSlot::new() }; PLACES])
    }

    /// Returns the place for a thread's blocks.
    #[inline(always)]
    fn place_of(&self, thread: usize) -> &ThreadSlot {
        // Multiplication by the golden ratio: pointers differ by multiples of a stack's size,
        // approximately.
        let spread = (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(spread >> (u64::BITS - PLACES.ilog2())) as usize % PLACES]
    }

    /// Returns a thread's entry for a class, if it has one.
    #[inline(always)]
    fn last_of(&self, thread: usize, class: usize) -> Option<&AtomicPtr<u8>> {
        if class >= SMALL.len() {
            return None;
        }
        let place = self.place_of(thread);
        if place.owner.load(Relaxed) == thread { place.last.get(class) } else { None }
    }

    fn claim(&self, thread: usize) {
        // Acquire pairs with the Release in `give_up`: the place is empty.
        let _ = self.place_of(thread).owner.compare_exchange(NOBODY, thread, Acquire, Relaxed);
    }

    fn release(&self, thread: usize, mut take: impl FnMut(usize, *mut u8)) {
        let place = self.place_of(thread);
        if place.owner.load(Relaxed) != thread {
            return;
        }
        for (class, last) in place.last.iter().enumerate() {
            let block = last.load(Relaxed);
            if !block.is_null() {
                last.store(null_mut(), Relaxed);
                take(class, block);
            }
        }
        place.owner.store(NOBODY, Release);
    }

    #[inline(always)]
    fn take(&self, thread: usize, class: usize) -> Option<NonNull<u8>> {
        let last = self.last_of(thread, class)?;
        let block = NonNull::new(last.load(Relaxed))?;
        last.store(null_mut(), Relaxed);
        Some(block)
    }

    #[inline(always)]
    fn give(&self, thread: usize, class: usize, block: *mut u8) -> bool {
        match self.last_of(thread, class) {
            Some(last) if last.load(Relaxed).is_null() => {
                last.store(block, Relaxed);
                true
            }
            _ => false,
        }
    }
}

/// Claims the place of the calling thread, if it is free.
pub(super) fn claim() {
    TABLE.claim(thread_pointer());
}

/// Gives up the place when the calling thread exits: `take` gets its blocks, with their classes.
pub(super) fn release(take: impl FnMut(usize, *mut u8)) {
    TABLE.release(thread_pointer(), take);
}

/// Returns the block of a class that this thread freed last.
#[inline(always)]
pub(super) fn take(class: usize) -> Option<NonNull<u8>> {
    TABLE.take(thread_pointer(), class)
}

/// Keeps a block. Returns false if there already is one, or no place for it.
#[inline(always)]
pub(super) fn give(class: usize, block: *mut u8) -> bool {
    TABLE.give(thread_pointer(), class, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: usize = 0x7000_1000;

    fn block(n: usize) -> NonNull<u8> {
        NonNull::new(std::ptr::without_provenance_mut(n)).unwrap()
    }

    #[test]
    fn last_freed_block_of_each_size_is_found() {
        let table = Box::new(Table::new());
        assert!(!table.give(THREAD, 0, block(16).as_ptr()), "the thread has no place yet");
        table.claim(THREAD);
        assert_eq!(table.take(THREAD, 0), None);
        assert!(table.give(THREAD, 0, block(16).as_ptr()) && table.give(THREAD, 6, block(32).as_ptr()));
        assert!(!table.give(THREAD, 0, block(48).as_ptr()), "one block is kept");
        assert!(!table.give(THREAD, SMALL.len(), block(48).as_ptr()), "only small blocks are kept");
        assert_eq!(table.take(THREAD, 0), Some(block(16)));
        assert_eq!(table.take(THREAD, 0), None);
        let mut left = Vec::new();
        table.release(THREAD, |class, block| left.push((class, block)));
        assert_eq!(left, [(6, block(32).as_ptr())]);
        assert!(!table.give(THREAD, 0, block(16).as_ptr()), "the place was given up");
    }

    #[test]
    fn a_thread_that_finds_its_place_taken_has_none() {
        let table = Box::new(Table::new());
        let place = |thread: usize| std::ptr::from_ref(table.place_of(thread));
        let other = (1..).map(|n| THREAD + n * 4096).find(|&other| place(other) == place(THREAD)).unwrap();
        table.claim(THREAD);
        assert!(table.give(THREAD, 0, block(16).as_ptr()));
        table.claim(other);
        assert!(!table.give(other, 1, block(32).as_ptr()) && table.take(other, 0).is_none());
        table.release(other, |_, _| panic!("the place belongs to another thread"));
        assert_eq!(table.take(THREAD, 0), Some(block(16)));
        table.release(THREAD, |_, _| panic!("the thread has no blocks"));
        table.claim(other);
        assert!(table.give(other, 1, block(32).as_ptr()));
    }

    #[test]
    fn threads_of_one_process_seldom_share_a_place() {
        let table = Table::new();
        // A 32-bit address has only the lower half of it.
        let first = 0x7f00_4000_06c0_u64 as usize;
        let stacks = (0..16).map(|n| std::ptr::from_ref(table.place_of(first + n * 0x80_1000)));
        let places: std::collections::HashSet<_> = stacks.collect();
        assert!(places.len() >= 12, "{}", places.len());
    }
}
