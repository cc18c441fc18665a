//! A pool of memory blocks of 1 to 128 KiB: for large message bodies and for the segments of the queues.
//!
//! The system's allocator is slow where this is fast: blocks of this size that one thread allocates and another one frees, and
//! blocks that go back to the kernel and come again page by page. Each thread keeps a few free blocks of each size; batches of them
//! travel between threads through the depot. Both are bounded. Other sizes go straight to the allocator.
//!
//! Nothing here waits: when the depot is locked (by a thread that does not even exist after a fork), the allocator does the job.

use std::alloc::Layout;
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// All blocks are aligned to this.
pub(crate) const ALIGN: usize = 16;

/// Sizes per doubling: 1, 1.5, 2, 3, 4, 6 ... KiB, each with room for a header.
const CLASSES: usize = 15;
const HEADER_ROOM: usize = 64;
/// What one thread keeps of one size, at most and in bytes, but two blocks in any case.
const KEPT_BY_THREAD: usize = 256 * 1024;
/// More blocks than this are never kept by a thread.
const KEPT_BLOCKS: usize = 32;
/// What the depot keeps in all, in bytes.
const KEPT_BY_DEPOT: usize = 8 * 1024 * 1024;

/// Body sizes of the classes.
const fn class_size(class: usize) -> usize {
    let base = 1024 << (class / 2);
    base + (class % 2) * (base / 2) + HEADER_ROOM
}

/// The smallest class that holds `size` bytes, or none if the pool does not do this size.
fn class_of(size: usize) -> Option<usize> {
    if size <= 1024 || size > class_size(CLASSES - 1) || cfg!(loom) {
        return None;
    }
    let kib = (size - 1).saturating_sub(HEADER_ROOM).max(1024) / 1024;
    let mut class = 2 * kib.ilog2() as usize;
    while class_size(class) < size {
        class += 1;
    }
    Some(class)
}

fn layout(size: usize) -> Option<Layout> {
    let size = class_of(size).map_or(size, class_size);
    Layout::from_size_align(size, ALIGN).ok()
}

/// A free block: the link to the next one lies in its first bytes.
struct Free {
    next: *mut Free,
}

/// A list of free blocks of one size.
#[derive(Clone, Copy)]
struct List {
    first: *mut Free,
    len: usize,
}

impl List {
    const EMPTY: List = List { first: std::ptr::null_mut(), len: 0 };

    fn pop(&mut self) -> Option<*mut u8> {
        if self.first.is_null() {
            return None;
        }
        let block = self.first;
        // SAFETY: blocks in a list are free memory with a valid link, and the list's alone.
        self.first = unsafe { (*block).next };
        self.len -= 1;
        Some(block.cast())
    }

    /// # Safety
    /// `block` is a block of the list's size that nobody uses.
    unsafe fn push(&mut self, block: *mut u8) {
        let block: *mut Free = block.cast();
        // SAFETY: every block is large enough and aligned for a link.
        unsafe { block.write(Free { next: self.first }) };
        self.first = block;
        self.len += 1;
    }

    /// Takes `n` blocks out.
    fn split(&mut self, n: usize) -> List {
        let mut taken = List::EMPTY;
        for _ in 0..n {
            let Some(block) = self.pop() else { break };
            // SAFETY: it was in this list.
            unsafe { taken.push(block) };
        }
        taken
    }

    fn free_all(&mut self, class: usize) {
        while let Some(block) = self.pop() {
            if let Some(layout) = layout(class_size(class)) {
                // SAFETY: all blocks of a class were allocated with this layout.
                unsafe { std::alloc::dealloc(block, layout) };
            }
        }
    }
}

/// How many blocks of a class a thread keeps.
const fn kept(class: usize) -> usize {
    let n = KEPT_BY_THREAD / class_size(class);
    if n < 2 {
        2
    } else if n > KEPT_BLOCKS {
        KEPT_BLOCKS
    } else {
        n
    }
}

/// The batches of free blocks that no thread holds.
struct Depot {
    batches: [Vec<List>; CLASSES],
    bytes: usize,
}

// SAFETY: the blocks in the depot are free memory that belongs to nobody else.
unsafe impl Send for Depot {}

static DEPOT: Mutex<Depot> = Mutex::new(Depot { batches: [const { Vec::new() }; CLASSES], bytes: 0 });

fn depot() -> Option<MutexGuard<'static, Depot>> {
    match DEPOT.try_lock() {
        Ok(depot) => Some(depot),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Gives a batch to the depot, or to the allocator if the depot is full or busy.
fn deposit(class: usize, mut batch: List) {
    let bytes = batch.len * class_size(class);
    if let Some(mut depot) = depot()
        && depot.bytes + bytes <= KEPT_BY_DEPOT
    {
        depot.bytes += bytes;
        depot.batches[class].push(batch);
        return;
    }
    batch.free_all(class);
}

/// Takes a batch out of the depot.
fn withdraw(class: usize) -> Option<List> {
    let mut depot = depot()?;
    let batch = depot.batches[class].pop()?;
    depot.bytes -= batch.len * class_size(class);
    Some(batch)
}

/// The free blocks of one thread.
struct Cache {
    lists: [List; CLASSES],
}

impl Drop for Cache {
    fn drop(&mut self) {
        for (class, list) in self.lists.iter_mut().enumerate() {
            if list.len > 0 {
                deposit(class, std::mem::replace(list, List::EMPTY));
            }
        }
    }
}

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache { lists: [List::EMPTY; CLASSES] }) };
}

/// Runs `f` on this thread's free blocks of a class; `None` while the thread ends.
#[inline]
fn with_list<R>(class: usize, f: impl FnOnce(&mut List) -> R) -> Option<R> {
    CACHE
        .try_with(|cache| cache.try_borrow_mut().ok().map(|mut cache| f(&mut cache.lists[class])))
        .ok()
        .flatten()
}

/// A block of at least `size` bytes of unspecified content; null if memory is exhausted. Freed by `free` with the same size.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    if let Some(class) = class_of(size) {
        let block = with_list(class, |list| {
            if list.len == 0 {
                *list = withdraw(class).unwrap_or(List::EMPTY);
            }
            list.pop()
        });
        if let Some(block) = block.flatten() {
            return block;
        }
    }
    match layout(size.max(1)) {
        // SAFETY: the layout is not empty.
        Some(layout) => unsafe { std::alloc::alloc(layout) },
        None => std::ptr::null_mut(),
    }
}

/// Gives a block back.
///
/// # Safety
/// `block` comes from `allocate` with the same `size`, and nobody uses it.
pub(crate) unsafe fn free(block: *mut u8, size: usize) {
    if let Some(class) = class_of(size) {
        let surplus = with_list(class, |list| {
            // SAFETY: the caller's promise.
            unsafe { list.push(block) };
            (list.len > kept(class)).then(|| list.split(kept(class).div_ceil(2)))
        });
        match surplus {
            Some(None) => return,
            Some(Some(batch)) => return deposit(class, batch),
            None => {}
        }
    }
    if let Some(layout) = layout(size.max(1)) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(block, layout) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in 0..200_000 {
            match class_of(size) {
                None => assert!(size <= 1024 || size > class_size(CLASSES - 1), "size {size}"),
                Some(class) => {
                    assert!(class_size(class) >= size, "size {size}");
                    assert!(class == 0 || class_size(class - 1) < size, "size {size}");
                }
            }
        }
        assert_eq!(class_size(CLASSES - 1), 128 * 1024 + HEADER_ROOM);
    }

    #[test]
    fn a_freed_block_comes_again() {
        for size in [2000, 8192, 65536] {
            let first = allocate(size);
            // SAFETY: just allocated with this size, and used no more afterwards.
            unsafe {
                first.write_bytes(7, size);
                free(first, size);
            }
            let second = allocate(size);
            assert_eq!(first, second);
            // SAFETY: as above.
            unsafe { free(second, size) };
        }
    }

    #[test]
    fn blocks_travel_from_thread_to_thread_and_are_never_held_twice() {
        let (give, take) = std::sync::mpsc::sync_channel::<(usize, usize)>(300);
        let rounds = if cfg!(miri) { 200 } else { 20_000 };
        let freeing = std::thread::spawn(move || {
            let mut held = std::collections::VecDeque::new();
            let check = |(block, n): (usize, usize)| {
                let block = std::ptr::with_exposed_provenance_mut::<u8>(block);
                // SAFETY: handed over by the other thread, which wrote the number and uses the block no more.
                unsafe {
                    assert_eq!(block.cast::<usize>().read(), n);
                    free(block, 3000 + n % 3 * 30_000);
                }
            };
            for item in take {
                held.push_back(item);
                if held.len() > 100 {
                    held.pop_front().into_iter().for_each(check);
                }
            }
            held.into_iter().for_each(check);
        });
        for n in 0..rounds {
            let block = allocate(3000 + n % 3 * 30_000);
            // SAFETY: large enough, aligned, ours.
            unsafe { block.cast::<usize>().write(n) };
            give.send((block.expose_provenance(), n)).unwrap();
        }
        drop(give);
        freeing.join().unwrap();
    }
}
