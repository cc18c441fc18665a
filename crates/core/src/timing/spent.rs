//! What the calling thread has spent on writing, to whatever peers.

use std::cell::Cell;

/// The account of one thread, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// All that it has ever spent on writing and on waking others for it.
    pub(super) total: u64,
    /// When its last write ended, and what that took.
    pub(super) last: u64,
    pub(super) took: u64,
}

thread_local! {
    static SPENT: Cell<Spent> = const { Cell::new(Spent { total: 0, last: 0, took: 0 }) };
}

/// The account of this thread.
pub(super) fn spent() -> Spent {
    SPENT.get()
}

/// This thread has written from `start` to `end`.
pub(super) fn write(start: u64, end: u64) {
    let took = end.saturating_sub(start);
    SPENT.set(Spent { total: SPENT.get().total.wrapping_add(took), last: end, took });
}

/// This thread was kept for so long by having another one write.
pub(super) fn delegate(took: u64) {
    let spent = SPENT.get();
    SPENT.set(Spent { total: spent.total.wrapping_add(took), ..spent });
}

/// The account is that of a thread that has written nothing yet.
#[cfg(test)]
pub(super) fn forget() {
    SPENT.set(Spent::default());
}
