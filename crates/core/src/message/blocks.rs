//! A pool of memory blocks of up to 128 KiB: for message bodies and for the segments of the queues.
//!
//! The system's allocator is slow where this is fast: large blocks that one thread allocates and another one frees, and
//! blocks that go back to the kernel and come again page by page; and for small ones it takes twice as long. Each thread keeps a few free blocks of each size, and takes those
//! first that it gave back last: they are in its cache. What is more goes in batches through the depot, to whatever thread needs
//! blocks of that size.
//!
//! There it is the other way round. A block that another thread has just read is in that one's cache, and each line of it would
//! have to be fetched back from there to be written to. So the depot is a queue, and a large block comes out of it only after
//! [`cache::CIRCULATION`] bytes have gone in behind it: by then its lines are in the cache that the cores share. Measured with 64 KiB
//! bodies and with segments of small messages between two threads, on cores with 512 KiB of cache each.
//!
//! All of it is bounded, and a size that is no more in use goes back to the allocator when others are. Nothing here waits: blocks
//! that the depot does not take are freed, and those that it does not have are allocated.

#[cfg(not(loom))]
mod cache;
mod ring;

use std::alloc::Layout;

/// All blocks are aligned to this.
pub(crate) const ALIGN: usize = 16;

/// The sizes of the small classes.
const SMALL: [usize; 7] = [96, 128, 192, 256, 384, 512, 768];
const SMALL_MAX: usize = SMALL[SMALL.len() - 1];
/// The small class of each size, in steps of 32 bytes.
const SMALL_CLASS: [u8; SMALL_MAX / STEP + 1] = small_classes();
const STEP: usize = 32;
/// The large class of each size less `HEADER_ROOM`, in steps of 512 bytes.
const LARGE_CLASS: [u8; LARGEST / LARGE_STEP] = large_classes();
const LARGE_STEP: usize = 512;
const LARGEST: usize = class_size(CLASSES - 1) - HEADER_ROOM;

/// Large sizes per doubling: 1, 1.5, 2, 3, 4, 6 ... KiB, each with room for a header.
const CLASSES: usize = SMALL.len() + 15;
const HEADER_ROOM: usize = 64;

const fn small_classes() -> [u8; SMALL_MAX / STEP + 1] {
    let mut classes = [0; SMALL_MAX / STEP + 1];
    let mut step = 1;
    while step < classes.len() {
        classes[step] = classes[step - 1];
        if step * STEP > SMALL[classes[step] as usize] {
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

/// Sizes of the classes.
const fn class_size(class: usize) -> usize {
    if class < SMALL.len() {
        return SMALL[class];
    }
    let large = class - SMALL.len();
    let base = 1024 << (large / 2);
    base + (large % 2) * (base / 2) + HEADER_ROOM
}

/// The smallest class that holds `size` bytes, or none if the pool does not do this size.
#[inline(always)]
fn class_of(size: usize) -> Option<usize> {
    if size <= SMALL_MAX {
        return Some(SMALL_CLASS[size.saturating_sub(1) / STEP + 1].into());
    }
    LARGE_CLASS.get((size - HEADER_ROOM - 1) / LARGE_STEP).map(|&class| class.into())
}

fn layout(size: usize) -> Option<Layout> {
    let size = class_of(size).map_or(size, class_size);
    Layout::from_size_align(size, ALIGN).ok()
}

/// A block of at least `size` bytes of unspecified content; null if memory is exhausted. Freed by `free` with the same size.
#[inline(always)]
pub(crate) fn allocate(size: usize) -> *mut u8 {
    #[cfg(not(loom))]
    if let Some(class) = class_of(size)
        && let Some(block) = cache::take(class)
    {
        return block;
    }
    allocate_anew(size)
}

#[cold]
#[inline(never)]
fn allocate_anew(size: usize) -> *mut u8 {
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
#[inline(always)]
pub(crate) unsafe fn free(block: *mut u8, size: usize) {
    #[cfg(not(loom))]
    if let Some(class) = class_of(size)
        && cache::give(class, block)
    {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { free_for_good(block, size) };
}

/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_for_good(block: *mut u8, size: usize) {
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
                None => assert!(size > class_size(CLASSES - 1), "size {size}"),
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
        for size in [80, 2000, 8192, 65536] {
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
