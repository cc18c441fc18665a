//! The account of one thread: its time is the scarce resource that the rules of all its
//! connections share. The engine keeps one account for each thread.

use std::cell::Cell;

use crate::crowd::Crowd;
use crate::rules::{Rule, is_disabled};

/// Account of one thread.
#[derive(Debug)]
pub struct ThreadAccount {
    write_time: Cell<WriteTime>,
    crowd: Cell<Crowd>,
    /// Copy of `Crowd::is_crowd` for a cheap check.
    is_crowd: Cell<bool>,
}

/// Time that a thread has spent on writing to all its peers, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteTime {
    /// Total time spent on writing and on waking other threads to write.
    pub(super) total: u64,
    /// End and duration of the last write.
    pub(super) last: u64,
    pub(super) took: u64,
}

impl ThreadAccount {
    /// Returns the account of a thread that has not written yet.
    pub const fn new() -> ThreadAccount {
        ThreadAccount {
            write_time: Cell::new(WriteTime { total: 0, last: 0, took: 0 }),
            crowd: Cell::new(Crowd::new()),
            is_crowd: Cell::new(false),
        }
    }

    pub(super) fn write_time(&self) -> WriteTime {
        self.write_time.get()
    }

    /// Notes that the thread has written from `start` to `end`.
    #[inline]
    pub fn record_write(&self, start: u64, end: u64) {
        let took = end.saturating_sub(start);
        let total = self.write_time.get().total.wrapping_add(took);
        self.write_time.set(WriteTime { total, last: end, took });
    }

    /// Notes that waking another thread to write took the thread `took` ticks.
    pub(super) fn record_delegation(&self, took: u64) {
        let before = self.write_time.get();
        self.write_time.set(WriteTime { total: before.total.wrapping_add(took), ..before });
    }

    /// True if the thread sends to a crowd and leaves its messages to the sweep.
    #[inline]
    pub fn sends_to_crowd(&self) -> bool {
        self.is_crowd.get()
    }

    /// Notes that the thread has flushed a connection itself, from `start` to `end` (ticks), and
    /// not to reply.
    #[inline]
    pub fn record_flush(&self, connection: usize, start: u64, end: u64) {
        if !is_disabled(Rule::Crowd) {
            self.change_crowd(|crowd| crowd.record_flush(connection, start, end));
        }
    }

    /// Called when a thread that sends to a crowd has a message for an unmarked connection. Returns
    /// true if the sweep still writes it.
    #[inline]
    pub fn continues_crowd(&self, now: u64, sweeper_idle: bool) -> bool {
        self.change_crowd(|crowd| crowd.should_continue(now, sweeper_idle))
    }

    /// Notes that the thread has marked a connection for this round of the sweep.
    #[inline]
    pub fn record_mark(&self, round: u32) {
        self.change_crowd(|crowd| crowd.record_mark(round));
    }

    fn change_crowd<R>(&self, with: impl FnOnce(&mut Crowd) -> R) -> R {
        let mut crowd = self.crowd.get();
        let result = with(&mut crowd);
        self.crowd.set(crowd);
        self.is_crowd.set(crowd.is_crowd());
        result
    }
}
