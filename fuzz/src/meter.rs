//! What an input costs: the memory that is in use, counted where it is allocated, and how much more of it there may be.
//!
//! Counted is what Rust allocates in this process, whichever thread does: the library with its I/O thread, and the target itself. So a
//! target keeps little, and only one that is measured runs at a time ([`Meter::begin`] holds a lock). A peer that sends `n` bytes may
//! cost a fixed amount and a small part of `n`: whatever grows *with* what it sends has no bound. What a peer sends and the
//! program does not take stays within the high-water mark, which the targets set to a few small messages.

use crate::live::NEVER;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a connection may cost, whatever its peer sends: the longest command of a handshake twice, what is read ahead, and what
/// belongs to the connection.
pub const CONNECTION: usize = 256 * 1024;
/// Of the bytes that a peer sends, one in so many may be in memory beyond that.
const PART: usize = 4;
/// Bytes that inputs may leave behind, all together: tables that keep their size.
const LEFT_BEHIND: usize = 32 << 20;

/// Bytes in use, the most of them since the last [`Meter::begin`], and calls to the allocator.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes in use when the first input began.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and a count of what it gives.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grown(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
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
        // Both are there while the bytes are copied.
        grown(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// What one input costs.
pub struct Meter {
    live: usize,
    calls: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Meter {
    /// Begins to count, as soon as nobody else does.
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

    /// The most bytes that have been in use beyond those of the beginning.
    pub fn peak(&self) -> usize {
        PEAK.load(Relaxed).saturating_sub(self.live)
    }

    /// Sees that no more than `most` bytes beyond those of the beginning stay in use, `meanwhile` being what the program does until the
    /// others are given back.
    pub fn see_given_back(&self, most: usize, mut meanwhile: impl FnMut()) {
        for look in 0.. {
            let left = LIVE.load(Relaxed).saturating_sub(self.live);
            if left <= most {
                return;
            }
            assert!(look < NEVER, "{left} bytes stay in use");
            meanwhile();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// How often memory was asked for: a measure of work that does not depend on the machine.
    pub fn calls(&self) -> usize {
        CALLS.load(Relaxed) - self.calls
    }

    /// Sees that peers who have sent `taken` bytes cost no more than `fixed` bytes and a part of theirs.
    pub fn check(&self, fixed: usize, taken: usize) {
        let (peak, most) = (self.peak(), fixed + taken / PART);
        assert!(peak <= most, "{peak} bytes in use for {taken} from peers, {most} are allowed");
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // What a failure leaves behind, and what it takes to tell of it, is not held against the inputs that follow.
        if std::thread::panicking() {
            FIRST.store(0, Relaxed);
        }
    }
}
