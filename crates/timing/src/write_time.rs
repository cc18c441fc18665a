//! Time that the calling thread has spent on writing, to all its peers.

use std::cell::Cell;

/// Account of one thread, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTime {
    /// Total time spent on writing and on waking other threads to write.
    pub(super) total: u64,
    /// End and duration of the last write.
    pub(super) last: u64,
    pub(super) took: u64,
}

thread_local! {
    static SPENT: Cell<WriteTime> = const { Cell::new(WriteTime { total: 0, last: 0, took: 0 }) };
}

/// Returns the account of this thread.
pub(super) fn current() -> WriteTime {
    SPENT.get()
}

/// Notes that this thread has written from `start` to `end`.
#[inline]
pub fn write(start: u64, end: u64) {
    let took = end.saturating_sub(start);
    SPENT.set(WriteTime { total: SPENT.get().total.wrapping_add(took), last: end, took });
}

/// Notes that waking another thread to write took this thread `took` ticks.
pub(super) fn delegate(took: u64) {
    let spent = SPENT.get();
    SPENT.set(WriteTime { total: spent.total.wrapping_add(took), ..spent });
}

/// Resets the account to that of a thread that has not written yet.
#[cfg(test)]
pub(super) fn forget() {
    SPENT.set(WriteTime::default());
}
