//! A pool of memory blocks of up to 128 KiB: for message bodies and for the segments of the queues.
//!
//! The system's allocator is slow in three cases that are fast here: large blocks that one thread
//! allocates and another one frees, blocks that go back to the kernel and return page by page, and
//! small blocks, for which it takes twice as long. Each thread keeps a few free blocks of each
//! size, and reuses the most recently freed block first, because it is in the thread's cache.
//! Surplus blocks go to the depot in batches, for any thread that needs blocks of that size.
//!
//! The depot is FIFO; thread caches are LIFO. A block that another thread has just read is in that
//! thread's cache, and each of its lines must be fetched from there before it is written. So the
//! depot gives the oldest blocks first.
//!
//! All parts of the pool are bounded. Blocks of an unused size go back to the allocator while other
//! sizes are in use. The pool never waits: blocks that the depot does not take are freed, and
//! blocks that it does not have are allocated.

#[cfg(not(loom))]
mod cache;
#[cfg(any(test, not(loom)))]
mod ring;
#[cfg(not(loom))]
mod thread_slots;

#[cfg(all(feature = "fuzzing", not(loom)))]
pub use cache::disable;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::reserve;

/// Alignment of all blocks.
pub const ALIGN: usize = 16;

/// The sizes of the small classes.
const SMALL: [usize; 7] = [96, 128, 192, 256, 384, 512, 768];
/// The largest size of a small class, in bytes.
pub const SMALL_MAX: usize = SMALL[SMALL.len() - 1];
/// The small class of each size minus one, in steps of 32 bytes.
const SMALL_CLASS: [u8; SMALL_MAX / STEP] = small_classes();
const STEP: usize = 32;
/// The large class of each size minus `HEADER_ROOM`, in steps of 512 bytes.
const LARGE_CLASS: [u8; LARGEST / LARGE_STEP] = large_classes();
const LARGE_STEP: usize = 512;
const LARGEST: usize = class_size(CLASSES - 1) - HEADER_ROOM;

/// Number of classes. The large sizes are 1, 1.5, 2, 3, 4, 6 ... KiB, each with room for a header.
const CLASSES: usize = SMALL.len() + 15;
const HEADER_ROOM: usize = 64;

const fn small_classes() -> [u8; SMALL_MAX / STEP] {
    let mut classes = [0; SMALL_MAX / STEP];
    let mut step = 1;
    while step < classes.len() {
        classes[step] = classes[step - 1];
        if (step + 1) * STEP > SMALL[classes[step] as usize] {
            classes[step] += 1;
        }
        step += 1;
    }
    classes
}

const fn large_classes() -> [u8; LARGEST / LARGE_STEP] {
    let mut classes = [SMALL.len() as u8; LARGEST / LARGE_STEP];
    let mut step = 1;
    while step < classes.len() {
        classes[step] = classes[step - 1];
        if (step + 1) * LARGE_STEP + HEADER_ROOM > class_size(classes[step] as usize) {
            classes[step] += 1;
        }
        step += 1;
    }
    classes
}

/// Returns the block size of a class.
const fn class_size(class: usize) -> usize {
    if class < SMALL.len() {
        return SMALL[class];
    }
    let large = class - SMALL.len();
    let base = 1024 << (large / 2);
    base + (large % 2) * (base / 2) + HEADER_ROOM
}

/// A size class, by its number. `NONE` is the class of sizes that the pool does not handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class(u8);

const NONE: Class = Class(CLASSES as u8);

impl Class {
    /// Returns the smallest class that holds `size` bytes.
    #[inline(always)]
    pub fn of(size: usize) -> Class {
        Class::small(size).unwrap_or_else(|| {
            LARGE_CLASS.get((size - HEADER_ROOM - 1) / LARGE_STEP).map_or(NONE, |&class| Class(class))
        })
    }

    /// Returns the smallest class that holds `size` bytes, if it is one of the small classes.
    #[inline(always)]
    pub fn small(size: usize) -> Option<Class> {
        SMALL_CLASS.get(size.saturating_sub(1) / STEP).map(|&class| Class(class))
    }

    #[inline(always)]
    fn index(self) -> usize {
        self.0.into()
    }

    /// Returns the class as a byte, for code that stores it with other data.
    #[inline(always)]
    pub fn byte(self) -> u8 {
        self.0
    }

    /// Returns the class from the result of `byte`.
    #[inline(always)]
    pub fn from_byte(byte: u8) -> Class {
        Class(byte)
    }
}

fn layout(size: usize) -> Option<Layout> {
    let class = Class::of(size);
    let size = if class == NONE { size } else { class_size(class.index()) };
    Layout::from_size_align(size, ALIGN).ok()
}

/// Returns a block of at least `size` bytes of unspecified content; null if memory is exhausted.
/// `free` with the same size frees it.
#[inline(always)]
pub fn allocate(size: usize) -> *mut u8 {
    allocate_of(Class::of(size), size).map_or(std::ptr::null_mut(), NonNull::as_ptr)
}

/// Returns a block of at least `size` bytes of unspecified content; `None` if memory is exhausted.
/// `class` is that of `size`. `free_of` with the same class and size frees the block.
#[inline(always)]
pub fn allocate_of(class: Class, size: usize) -> Option<NonNull<u8>> {
    #[cfg(not(loom))]
    if let Some(block) = cache::take(class.index()) {
        return Some(block);
    }
    let _ = class;
    allocate_from_system(size)
}

/// Memory for the largest blocks that does not come from the allocator. The pool keeps no block of
/// it: its sizes are those without a class.
#[derive(Debug)]
pub struct LargeSource {
    /// Smallest size of a block.
    pub least: usize,
    /// Returns a block of this size, or null. Gets true if the user asks for a block of the source.
    pub allocate: fn(usize, bool) -> *mut u8,
    /// True if the address belongs to the source.
    pub owns: fn(*const u8) -> bool,
    /// Gives a block back, which is no longer used.
    pub free: unsafe fn(*mut u8),
}

/// The source of this process, set once.
static LARGE_SOURCE: OnceLock<&'static LargeSource> = OnceLock::new();

/// Makes all later blocks of `source.least` bytes and more come from there, if it has memory.
pub fn set_large_source(source: &'static LargeSource) {
    let _ = LARGE_SOURCE.set(source);
}

fn large_source(size: usize) -> Option<&'static LargeSource> {
    LARGE_SOURCE.get().copied().filter(|source| size >= source.least && Class::of(size) == NONE)
}

/// Returns a block of at least `size` bytes of the large source, for a user that asks for it with
/// `asked`. `None` if the source has no memory for it. `free` with the same size frees it.
pub fn allocate_from_source(size: usize, asked: bool) -> Option<NonNull<u8>> {
    large_source(size).and_then(|source| NonNull::new((source.allocate)(size, asked)))
}

/// True if this address belongs to the large source.
pub fn is_of_source(address: *const u8) -> bool {
    LARGE_SOURCE.get().is_some_and(|source| (source.owns)(address))
}

#[cold]
#[inline(never)]
fn allocate_from_system(size: usize) -> Option<NonNull<u8>> {
    if let Some(block) = allocate_from_source(size, false) {
        return Some(block);
    }
    let layout = layout(size.max(1))?;
    // SAFETY: the layout is not empty.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
    // The reserve is for callers that cannot handle a failure.
    if reserve::holds(block.as_ptr()) {
        // SAFETY: just allocated with this layout.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        return None;
    }
    Some(block)
}

/// Gives a block back.
///
/// # Safety
/// `block` comes from `allocate` with the same `size`, and is no longer used.
#[inline(always)]
pub unsafe fn free(block: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_of(Class::of(size), block, size) };
}

/// Gives a block back. `class` is that of `size`.
///
/// # Safety
/// `block` comes from `allocate` or `allocate_of` with the same `size`, and is no longer used.
/// `class` is that of `size`.
#[inline(always)]
pub unsafe fn free_of(class: Class, block: *mut u8, size: usize) {
    #[cfg(not(loom))]
    if cache::give(class.index(), block) {
        return;
    }
    let _ = class;
    // SAFETY: the caller's promise.
    unsafe { free_to_system(block, size) };
}

/// # Safety
/// `block` comes from `allocate_from_system` with the same `size`, and is no longer used.
#[cold]
#[inline(never)]
unsafe fn free_to_system(block: *mut u8, size: usize) {
    if let Some(source) = large_source(size).filter(|source| (source.owns)(block)) {
        // SAFETY: a block of the source, which is no longer used.
        return unsafe { (source.free)(block) };
    }
    if let Some(layout) = layout(size.max(1)) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(block, layout) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in (0..200_000).step_by(if cfg!(miri) { 997 } else { 1 }) {
            match Class::of(size) {
                NONE => assert!(size > class_size(CLASSES - 1), "size {size}"),
                Class(class) => {
                    assert!(class_size(class.into()) >= size, "size {size}");
                    assert!(class == 0 || class_size(usize::from(class) - 1) < size, "size {size}");
                }
            }
        }
        assert_eq!(class_size(CLASSES - 1), 128 * 1024 + HEADER_ROOM);
    }

    /// A block of a source would go from the pool to the allocator.
    #[test]
    fn blocks_of_the_source_stay_outside_of_the_pool() {
        /// Memory of the source: one block after the other.
        static MEMORY: AtomicUsize = AtomicUsize::new(0);
        static FREED: AtomicUsize = AtomicUsize::new(0);
        const SIZE: usize = 1 << 20;
        let memory = Box::leak(vec![0_u8; SIZE].into_boxed_slice());
        MEMORY.store(memory.as_mut_ptr().expose_provenance(), Relaxed);
        let owns: fn(*const u8) -> bool =
            |address| (MEMORY.load(Relaxed)..MEMORY.load(Relaxed) + SIZE).contains(&address.addr());
        let source = LargeSource {
            least: 100_000,
            allocate: |_, _| std::ptr::with_exposed_provenance_mut(MEMORY.load(Relaxed)),
            owns,
            free: |_| _ = FREED.fetch_add(1, Relaxed),
        };
        set_large_source(Box::leak(Box::new(source)));
        for size in [99_999, 100_000, 128 * 1024 + 16, 128 * 1024 + HEADER_ROOM, 128 * 1024 + HEADER_ROOM + 1]
        {
            let from_source = size > class_size(CLASSES - 1);
            let block = allocate(size);
            assert_eq!(owns(block), from_source, "size {size}");
            assert_eq!(is_of_source(block), from_source);
            assert_eq!(allocate_from_source(size, false).is_some(), from_source, "size {size}");
            let before = FREED.load(Relaxed);
            // SAFETY: just allocated with this size.
            unsafe { free(block, size) };
            assert_eq!(FREED.load(Relaxed) - before, usize::from(from_source), "size {size}");
        }
    }

    #[test]
    fn freed_block_is_reused() {
        for size in [80, 2000, 8192, 65536] {
            let first = allocate(size);
            // SAFETY: just allocated with this size, and not used afterwards.
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
                // SAFETY: handed over by the other thread, which wrote the number and does not use
                // the block again.
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
