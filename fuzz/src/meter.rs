//! Cost of an input: the memory in use, counted at each allocation, and its limit.
//!
//! The count covers all Rust allocations of this process, on any thread: the library with its I/O thread, and
//! the target itself. So a target keeps little, and only one measured target runs at a time ([`Meter::begin`]
//! holds a lock). A peer that sends `n` bytes may cost a fixed amount and a small part of `n`. Memory that
//! grows in proportion to the sent bytes has no bound. Messages that the program does not receive stay within
//! the high-water mark, which the targets set to a few small messages.

use crate::live::MAX_POLLS;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a connection may cost, independent of its peer: twice the longest command of a handshake, the
/// read buffer, and the state of the connection.
pub const CONNECTION: usize = 256 * 1024;
/// Divisor: beyond that, 1/`PART` of the bytes that a peer sends may be in memory.
const PART: usize = 4;
/// Bytes that all inputs together may leave behind, such as tables that keep their size.
const LEFT_BEHIND: usize = 32 << 20;

/// Bytes in use, their maximum since the last [`Meter::begin`], and calls to the allocator.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes in use when the first input began.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with counters.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grown(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist while the bytes are copied.
        grown(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Cost of one input.
pub struct Meter {
    live: usize,
    calls: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Meter {
    /// Starts to count after all other measurements have ended.
    pub fn begin() -> Meter {
        static ALONE: Mutex<()> = Mutex::new(());
        tautline_core::fuzzing::keep_no_blocks();
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let live = LIVE.load(Relaxed);
        if FIRST.load(Relaxed) == 0 {
            FIRST.store(live, Relaxed);
        }
        let left = live.saturating_sub(FIRST.load(Relaxed));
        assert!(left < LEFT_BEHIND, "the inputs before have left {left} bytes behind");
        PEAK.store(live, Relaxed);
        Meter { live, calls: CALLS.load(Relaxed), _alone: alone }
    }

    /// Returns the maximum of bytes in use, minus the bytes in use at the beginning.
    pub fn peak(&self) -> usize {
        PEAK.load(Relaxed).saturating_sub(self.live)
    }

    /// Checks that at most `most` more bytes than at the beginning stay in use. `meanwhile` runs the
    /// program's part until the other bytes are freed.
    pub fn assert_memory_released(&self, most: usize, mut meanwhile: impl FnMut()) {
        for look in 0.. {
            let left = LIVE.load(Relaxed).saturating_sub(self.live);
            if left <= most {
                return;
            }
            assert!(look < MAX_POLLS, "{left} bytes stay in use");
            meanwhile();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Returns the number of allocations: a measure of work that does not depend on the machine.
    pub fn calls(&self) -> usize {
        CALLS.load(Relaxed) - self.calls
    }

    /// Checks that peers that have sent `taken` bytes cost at most `fixed` bytes and a part of `taken`.
    pub fn check(&self, fixed: usize, taken: usize) {
        let (peak, most) = (self.peak(), fixed + taken / PART);
        assert!(peak <= most, "{peak} bytes in use for {taken} from peers, {most} are allowed");
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // Memory that a failure leaves behind, or that its report needs, does not count against later inputs.
        if std::thread::panicking() {
            FIRST.store(0, Relaxed);
        }
    }
}
