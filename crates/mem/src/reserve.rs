//! A reserve for the time when the system has no memory. The C library and the modules of other
//! languages make [`ReserveAllocator`] their allocator. If the system refuses a request, the
//! allocator serves it from a static reserve, and memory counts as *short*.
//!
//! The standard library aborts the process if a small allocation fails. With the reserve, a call
//! that has begun can finish. While memory is short, the engine refuses new work:
//!
//! - Calls that create something fail with ENOMEM before they change anything.
//! - Connections are neither accepted nor attempted, and incomplete handshakes end.
//! - Blocks of the pool ([`crate::blocks`]) never come from the reserve, so sends and receives fail
//!   with ENOMEM.
//!
//! This bounds the use of the reserve. [`is_short`] asks the system again, so shortage ends by
//! itself. The reserve has no lock: a forked child may find it in the middle of any operation.
//!
//! A bitmap word describes 64 granules. A block is a run of granules of one word. The size of a
//! block is in its layout, so blocks have no headers. Pages of the reserve that were never used
//! take address space only.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::collections::TryReserveError;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Number of granules that one word of a bitmap describes.
const PER_WORD: usize = u64::BITS as usize;
const SMALL_GRANULE: usize = 64;
const SMALL_WORDS: usize = 128;
const SMALL_BYTES: usize = SMALL_WORDS * PER_WORD * SMALL_GRANULE;
const LARGE_GRANULE: usize = 4096;
const LARGE_WORDS: usize = 4;
const LARGE_BYTES: usize = LARGE_WORDS * PER_WORD * LARGE_GRANULE;

/// Size of the reserve.
const TOTAL: usize = SMALL_BYTES + LARGE_BYTES;

/// Long byte strings are mostly data of peers, and their owners handle a failed allocation. They
/// get at most half of the reserve.
const LONG_BYTES: usize = 1024;

/// The system must have this much memory before memory no longer counts as short.
const PROBE: Layout = match Layout::from_size_align(64 * 1024, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("a valid layout"),
};

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; TOTAL]>);

// SAFETY: this module never reads or writes the bytes through the cell. It gives each byte to at
// most one owner at a time.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; TOTAL]));
/// Set bits are granules in use.
static SMALL: [AtomicU64; SMALL_WORDS] = [const { AtomicU64::new(0) }; SMALL_WORDS];
static LARGE: [AtomicU64; LARGE_WORDS] = [const { AtomicU64::new(0) }; LARGE_WORDS];
/// Number of bytes in use.
// Relaxed: number.
static USED: AtomicUsize = AtomicUsize::new(0);
/// True after the system refused a request.
// Relaxed: look: a thread that misses a change begins one more call, which the reserve can serve.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Part of the reserve with granules of one size.
struct Zone {
    words: &'static [AtomicU64],
    granule: usize,
    /// Distance from the beginning of the reserve.
    start: usize,
}

static ZONES: [Zone; 2] = [
    Zone { words: &SMALL, granule: SMALL_GRANULE, start: 0 },
    Zone { words: &LARGE, granule: LARGE_GRANULE, start: SMALL_BYTES },
];

/// Returns the bits of the lowest free run of `count` granules that begins at a multiple of `step`.
fn free_run(word: u64, count: usize, step: usize) -> Option<u64> {
    let run = u64::MAX >> (PER_WORD - count);
    (0..=PER_WORD - count).step_by(step).map(|at| run << at).find(|run| word & run == 0)
}

impl Zone {
    fn count(&self, bytes: usize) -> usize {
        bytes.max(1).div_ceil(self.granule)
    }

    /// Takes a block. Returns its distance from the beginning of the reserve.
    fn take(&self, layout: Layout) -> Option<usize> {
        let count = self.count(layout.size());
        let step = layout.align().div_ceil(self.granule);
        if count > PER_WORD || layout.align() > align_of::<Memory>() {
            return None;
        }
        for (index, word) in self.words.iter().enumerate() {
            // Relaxed: look: the exchange decides.
            let mut bits = word.load(Ordering::Relaxed);
            while let Some(run) = free_run(bits, count, step) {
                // Relaxed: look: after a failure, the loop tries again. Acquire pairs with the
                // Release in `release`.
                match word.compare_exchange(bits, bits | run, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => {
                        USED.fetch_add(count * self.granule, Ordering::Relaxed);
                        let granule = index * PER_WORD + run.trailing_zeros() as usize;
                        return Some(self.start + granule * self.granule);
                    }
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Frees the granules of a block of `old` bytes at `offset` that `new` bytes do not need.
    fn release(&self, offset: usize, old: usize, new: usize) {
        let kept = if new == 0 { 0 } else { self.count(new) };
        let first = (offset - self.start) / self.granule + kept;
        let Some(count) = self.count(old).checked_sub(kept).filter(|&count| count > 0) else { return };
        let run = (u64::MAX >> (PER_WORD - count)) << (first % PER_WORD);
        // Release pairs with the Acquire in `take`: the accesses of this owner are over.
        self.words[first / PER_WORD].fetch_and(!run, Ordering::Release);
        USED.fetch_sub(count * self.granule, Ordering::Relaxed);
    }
}

/// Returns the distance of `place` from the beginning of the reserve. At least `TOTAL` if the
/// reserve does not have it.
#[inline(always)]
fn offset(place: *mut u8) -> usize {
    place.addr().wrapping_sub(MEMORY.0.get().addr())
}

/// True if `place` is in the reserve.
#[inline(always)]
pub fn holds(place: *mut u8) -> bool {
    offset(place) < TOTAL
}

fn zone(offset: usize) -> &'static Zone {
    &ZONES[usize::from(offset >= SMALL_BYTES)]
}

/// Serves a request that the system refused. Null if the reserve has no room.
#[cold]
#[inline(never)]
fn serve(layout: Layout) -> *mut u8 {
    SHORT.store(true, Ordering::Relaxed);
    let is_long = layout.align() == 1 && layout.size() >= LONG_BYTES;
    if is_long && USED.load(Ordering::Relaxed) + layout.size() > TOTAL / 2 {
        return null_mut();
    }
    let found = ZONES.iter().find_map(|zone| zone.take(layout));
    found.map_or(null_mut(), |offset| MEMORY.0.get().cast::<u8>().wrapping_add(offset))
}

#[cold]
#[inline(never)]
fn release(offset: usize, old: usize, new: usize) {
    zone(offset).release(offset, old, new);
}

/// True if memory is short: the system refused memory and still refuses it, or half of the reserve
/// is in use. Costs one load until the system first refuses memory. Always false for a program
/// whose allocator is not [`ReserveAllocator`].
#[inline]
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed) && is_still_short()
}

/// There is no memory for the data to be queued or received, or the queue's counter is at its
/// limit. The state is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl From<TryReserveError> for NoMemory {
    fn from(_: TryReserveError) -> Self {
        NoMemory
    }
}

/// Fails while memory is short. Called before something new begins, so that the reserve suffices
/// for everything that has begun.
#[inline]
pub fn check_shortage() -> Result<(), NoMemory> {
    if is_short() { Err(NoMemory) } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn is_still_short() -> bool {
    let is_short = USED.load(Ordering::Relaxed) > TOTAL / 2 || !is_available(PROBE);
    if !is_short {
        SHORT.store(false, Ordering::Relaxed);
    }
    is_short
}

/// True if the system has memory for `bytes` now.
pub fn system_has(bytes: usize) -> bool {
    Layout::from_size_align(bytes.max(1), 16).is_ok_and(is_available)
}

fn is_available(layout: Layout) -> bool {
    // SAFETY: the layout is not empty.
    let place = unsafe { System.alloc(layout) };
    // Keep the compiler from removing the allocation, which is never used.
    if std::hint::black_box(place).is_null() {
        return false;
    }
    // SAFETY: allocated with this layout.
    unsafe { System.dealloc(place, layout) };
    true
}

/// The system's allocator, with the reserve behind it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReserveAllocator;

// SAFETY: every block is one of the system's allocator, or a run of granules of the reserve. The
// compare-exchange in `take` gives each granule to one block. Both zones, and the granules of each
// word, begin at a multiple of the alignment of `MEMORY`. `take` refuses larger alignments, and
// places other blocks at a multiple of theirs. No function unwinds.
unsafe impl GlobalAlloc for ReserveAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let place = unsafe { System.alloc(layout) };
        if place.is_null() { serve(layout) } else { place }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let place = unsafe { System.alloc_zeroed(layout) };
        if !place.is_null() {
            return place;
        }
        let place = serve(layout);
        if !place.is_null() {
            // SAFETY: a block of this size, which has no other owner.
            unsafe { place.write_bytes(0, layout.size()) };
        }
        place
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let offset = offset(place);
        if offset < TOTAL {
            release(offset, layout.size(), 0);
        } else {
            // SAFETY: a block of the system's allocator, and the caller's promise.
            unsafe { System.dealloc(place, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !holds(place) {
            // SAFETY: a block of the system's allocator, and the caller's promise.
            let moved = unsafe { System.realloc(place, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { move_block(place, layout, size) }
    }
}

/// Resizes a block of the reserve, or one that the system refused to resize.
///
/// # Safety
/// That of [`GlobalAlloc::realloc`].
#[cold]
#[inline(never)]
unsafe fn move_block(place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if size <= layout.size() {
        // A block of the system may be longer than its layout: it is freed by its address.
        if holds(place) {
            release(offset(place), layout.size(), size);
        }
        return place;
    }
    let Ok(new) = Layout::from_size_align(size, layout.align()) else { return null_mut() };
    // SAFETY: the size is not zero, because it is more than another size.
    let moved = unsafe { ReserveAllocator.alloc(new) };
    if !moved.is_null() {
        // SAFETY: both blocks have at least the old size, and the new one has no other owner. The
        // caller gives up the old one.
        unsafe {
            moved.copy_from_nonoverlapping(place, layout.size());
            ReserveAllocator.dealloc(place, layout);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// Held by each test: the reserve is shared by the process.
    static ALONE: Mutex<()> = Mutex::new(());

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    fn free(place: *mut u8, layout: Layout) {
        // SAFETY: the tests free each block once, with its layout.
        unsafe { ReserveAllocator.dealloc(place, layout) };
    }

    #[test]
    fn blocks_of_the_reserve_never_overlap() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = if cfg!(miri) { 2 } else { 4 };
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut blocks = Vec::new();
                    for round in 0..if cfg!(miri) { 40 } else { 300_usize } {
                        let layout = layout(round * 37 % 5000 + 1, 1 << (3 + round % 7));
                        let place = serve(layout);
                        assert!(holds(place) && place.addr().is_multiple_of(layout.align()));
                        // SAFETY: a block of this size.
                        unsafe { place.write_bytes(thread, layout.size()) };
                        blocks.push((place, layout));
                        if blocks.len() > 20 {
                            let (place, layout) = blocks.swap_remove(round * 7 % blocks.len());
                            // SAFETY: written above.
                            let bytes = unsafe { std::slice::from_raw_parts(place, layout.size()) };
                            assert!(bytes.iter().all(|&byte| byte == thread));
                            free(place, layout);
                        }
                    }
                    blocks.into_iter().for_each(|(place, layout)| free(place, layout));
                });
            }
        });
        assert_eq!(USED.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_block_keeps_its_bytes_when_it_is_resized() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let small = layout(300, 8);
        let place = serve(small);
        // SAFETY: a block of this size, resized with its current layout and freed once.
        unsafe {
            place.write_bytes(7, 300);
            let shorter = ReserveAllocator.realloc(place, small, 100);
            assert!(shorter == place && USED.load(Ordering::Relaxed) == 128);
            let longer = ReserveAllocator.realloc(shorter, layout(100, 8), 70_000);
            assert!(!holds(longer), "the system has memory again");
            assert!(std::slice::from_raw_parts(longer, 100).iter().all(|&byte| byte == 7));
            free(longer, layout(70_000, 8));
        }
        assert_eq!(USED.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn requests_beyond_the_reserve_fail() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(serve(layout(LARGE_GRANULE * PER_WORD + 1, 8)).is_null());
        assert!(serve(layout(8, 1 << 20)).is_null());
        let bytes = layout(64 * 1024, 1);
        let long: Vec<_> =
            std::iter::repeat_with(|| serve(bytes)).take_while(|place| !place.is_null()).collect();
        assert!(long.len() * bytes.size() <= TOTAL / 2, "long byte strings get half of the reserve");
        let rest = layout(64 * 1024, 8);
        let others: Vec<_> =
            std::iter::repeat_with(|| serve(rest)).take_while(|place| !place.is_null()).collect();
        assert!(!others.is_empty() && is_short());
        others.into_iter().for_each(|place| free(place, rest));
        long.into_iter().for_each(|place| free(place, bytes));
        assert!(!is_short(), "the system has memory, and the reserve is free");
    }
}
