//! Full fences on both sides, for systems without a process-wide barrier.

use std::sync::atomic::{Ordering::SeqCst, fence};

/// Fence of the frequent side.
#[inline]
pub fn light() {
    fence(SeqCst);
}

/// Fence of the rare side. Takes a few microseconds.
pub fn heavy() {
    fence(SeqCst);
}

/// Does nothing on this system.
pub fn prepare() {}
