//! The flush rule: decides when an owner writes its queued bytes to the kernel itself, and when it
//! leaves them for later.
//!
//! *Writing may take a share of a thread's time.* After a write, the thread does other work for a
//! multiple of the time that the write took. Messages that it queues in this time leave with the
//! next write. So writes become larger when messages come faster or when a write costs more. A
//! thread that sends to many peers writes as rarely as a thread that sends to one peer. The rule
//! measures all its inputs.
//!
//! If something other than the sender's own work sets its pace (`pace`), writing may use a third of
//! the time, because a queued message is already late. A busy sender loses the time of each write,
//! so writing may use a ninth.
//!
//! The owner writes at once when waiting cannot help:
//!
//! - The write is full: one more message would cost another write ([`is_full_write`]).
//! - Messages come alone: writing each one takes at most two thirds of the time.
//! - The message is a reply that a peer waits for, unless the last write has just ended.
//! - A predicted burst ends (`bursts`). The rule may then have held the whole burst for one write.
//!
//! The share alone ensures that the first message after a lull is written at once. The watch of the
//! I/O thread (`supervisor`) covers the bytes that stay queued. Inputs are times in clock ticks,
//! outputs are decisions. Each pipe has one rule.

use super::account::ThreadAccount;
use super::bursts::Bursts;
pub use super::bursts::Deferred;
use super::pace::{Pace, weigh};
use super::{LULL_NS, RARE_INTERVAL, SEGMENT, WAKE, supervisor};
use crate::rules::{Rule, is_disabled};
use std::sync::OnceLock;

/// Number of pending bytes that always justifies a write: one segment without the headers. A few
/// bytes more would need a second segment, which costs as much again except for the copying.
pub const FULL_BYTES: u64 = SEGMENT as u64 - 256;

/// True if `pending` bytes are a full write: another message of `len` bytes would not fit into the
/// same segment.
#[inline]
pub fn is_full_write(pending: u64, len: usize) -> bool {
    pending + framed(len) > FULL_BYTES
}

/// Size on the wire of a message with one part, in bytes.
#[inline]
pub fn framed(len: usize) -> u64 {
    len as u64 + if len > 255 { 9 } else { 2 }
}

/// After a write, a thread does other work for this multiple of the write's duration.
const SHARE: u64 = 2;
/// After a write, a sender whose own work sets its pace does other work for this multiple of the
/// write's duration.
const BUSY_SHARE: u64 = 8;

/// Longest time between two looks at the clock, in nanoseconds.
pub(super) const CLOCK_CHECK_NS: u64 = WAKE / 5;
/// Minimum cost of a write, in nanoseconds: the least that it costs the peer to find the message.
const LEAST_NS: u64 = 1_000;
/// Longest time in nanoseconds that a message waits for others, if the sender's own work sets its
/// pace. Larger than half of [`WAKE`], because a busy sender gains more than waking costs.
const BUSY_LONGEST_NS: u64 = 64_000;
/// A thread that does other work than flushing for this time, in nanoseconds, does not send to a
/// crowd (see `crowd`).
const CROWD_NS: u64 = 50_000;

/// Times of the rules in clock ticks.
#[derive(Debug)]
pub(super) struct Times {
    /// [`LEAST_NS`].
    least: u64,
    /// Longest time that a message waits for others: half of the time that a peer spins before it
    /// sleeps (`idle`). To wake the peer costs more than several writes.
    pub(super) longest: u64,
    /// [`BUSY_LONGEST_NS`].
    busy_longest: u64,
    /// Longest time between two looks at the clock. An owner that has not looked for twice this
    /// time counts as gone (`supervisor`).
    look: u64,
    /// Time to wake a peer that makes room. For this time we believe that the kernel's buffer is
    /// still full. A write that took longer was interrupted.
    pub(super) wake: u64,
    /// After this time without a message, the next message begins a burst.
    pub(super) quiet: u64,
    /// A burst that lasts this long, without longer pauses, is a stream. The end of a stream may
    /// wait for the watch.
    pub(super) stream: u64,
    /// Longest pause before a burst that the average counts.
    pub(super) pause_max: u64,
    /// After a longer pause no burst is held, because the watch may no longer cover the pipe.
    pub(super) seldom: u64,
    /// [`CROWD_NS`].
    pub(super) crowd: u64,
}

pub(super) fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = crate::clock::nanos_to_ticks;
        Times {
            least: ticks(LEAST_NS),
            longest: ticks(WAKE / 2),
            busy_longest: ticks(BUSY_LONGEST_NS),
            look: ticks(CLOCK_CHECK_NS),
            wake: ticks(WAKE),
            quiet: ticks(WAKE / 2),
            stream: ticks(supervisor::FOLLOW_UP_CHECK_NS),
            pause_max: ticks(LULL_NS),
            seldom: ticks(supervisor::PREDICTION_TIMEOUT_NS / 2),
            crowd: ticks(CROWD_NS),
        }
    })
}

/// Action after a message was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Write now.
    Flush,
    /// Leave the message queued. The value names the thread that will write it.
    Later(Deferred),
}

/// State of the rule for one pipe. The fields that each message touches come first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct FlushRule {
    /// Messages since the last flush.
    unflushed_messages: u32,
    /// Count of messages at which the rule looks at the clock next.
    next: u32,
    /// State at the last look: messages since the last flush, the time, and the thread's total time
    /// in writes.
    checked_messages: u32,
    seen: u64,
    spent: u64,
    /// End and duration of the last flush.
    last: u64,
    flush_ticks: u64,
    /// Average time between two messages, without writes.
    interval: u64,
    /// Average cost of a flush, without interrupted ones.
    cost: u64,
    /// True if the kernel's buffer was full at the last flush.
    blocked: bool,
    pace: Pace,
    bursts: Bursts,
}

impl FlushRule {
    /// Counts a published message. Returns true if the caller must call [`FlushRule::decide`].
    #[inline]
    pub fn count(&mut self) -> bool {
        self.unflushed_messages += 1;
        self.unflushed_messages >= self.next
    }

    /// Returns the number of messages since the last flush, or since the sweep last took over.
    #[inline]
    pub fn count_so_far(&self) -> u32 {
        self.unflushed_messages
    }

    /// Decides for `thread` at time `now` (ticks), with `pending` bytes queued. The last message
    /// has `len` bytes. If `reply` is set, a peer waits for it.
    pub fn decide(
        &mut self,
        thread: &ThreadAccount,
        now: u64,
        pending: u64,
        len: usize,
        reply: bool,
    ) -> Decision {
        if reply && self.unflushed_messages == 1 && self.time_left(thread, now, true) == 0 {
            // The peer waits, and this message teaches the rule no new facts.
            return Decision::Flush;
        }
        let elsewhere = self.take_write_time(thread);
        let alone = self.learn_pace(now, elsewhere);
        if self.blocked {
            // An owner that waits for the kernel has not reached the end of a burst.
            self.bursts.resume(now);
        }
        let (ends, ahead) =
            self.bursts.check(thread, now, self.unflushed_messages, self.last, self.cost, elsewhere);
        self.bursts.held &= !self.blocked && !reply;
        let left = self.time_left(thread, now, reply);
        let due = left == 0 || alone && !self.blocked;
        if due && !self.bursts.held || !self.blocked && (ends || is_full_write(pending, len)) {
            return Decision::Flush;
        }
        let room = match self.blocked {
            // If the kernel is full, only the time matters.
            true => u32::MAX,
            false => (FULL_BYTES.saturating_sub(pending) / framed(len)) as u32,
        };
        self.next = self.unflushed_messages + self.step().min(room).min(ahead).max(1);
        // The I/O thread already knows that the kernel's buffer is full.
        Decision::Later(if self.blocked { Deferred::WatchNotified } else { self.bursts.defer() })
    }

    /// Returns the time that the thread has spent on writing since the last look at this pipe.
    /// (After a socket moves to another thread, its first reading is wrong once.)
    fn take_write_time(&mut self, thread: &ThreadAccount) -> u64 {
        let total = thread.write_time().total;
        total.saturating_sub(std::mem::replace(&mut self.spent, total))
    }

    /// Learns the pace of the messages since the last look. Returns true if messages come alone.
    fn learn_pace(&mut self, now: u64, elsewhere: u64) -> bool {
        let times = times();
        let messages = self
            .unflushed_messages
            .saturating_sub(std::mem::replace(&mut self.checked_messages, self.unflushed_messages))
            .max(1);
        let passed = now.saturating_sub(std::mem::replace(&mut self.seen, now));
        if is_disabled(Rule::Share) {
            return false;
        }
        if self.unflushed_messages == 1 {
            let lead = now.saturating_sub(self.last).saturating_sub(elsewhere);
            if lead >= times.quiet {
                self.pace = Pace::default();
            } else if self.flush_ticks <= self.cost * 2 {
                self.pace.note(lead, self.flush_ticks);
            }
        }
        let interval = passed.saturating_sub(elsewhere) / u64::from(messages);
        // A longer interval is a lull.
        if interval < times.busy_longest {
            self.interval = (self.interval * 3 + interval) / 4;
        }
        !self.is_busy() && self.interval.min(interval) * 2 >= self.cost
    }

    /// True if the sender sends as fast as its own work allows.
    fn is_busy(&self) -> bool {
        self.pace.is_set_by_work(self.interval)
    }

    /// Returns the ticks for which the thread does other work before it writes again. 0 if it may
    /// write now.
    fn time_left(&self, thread: &ThreadAccount, now: u64, reply: bool) -> u64 {
        let times = times();
        let gap = |took: u64, share: u64, longest: u64| (took.max(times.least) * share).min(longest);
        let spent = thread.write_time();
        let (since, gap) = match reply {
            true => (self.last, self.flush_ticks.min(times.least)),
            false if self.is_busy() => (spent.last, gap(spent.took, BUSY_SHARE, times.busy_longest)),
            false => (spent.last, gap(spent.took, SHARE, times.longest)),
        };
        (since + if self.blocked { gap.max(times.wake) } else { gap }).saturating_sub(now)
    }

    /// Returns the number of messages until the next look at the clock: a quarter of the messages
    /// since the last flush, because a look costs as much as queuing a small message. The number
    /// stays small, because the pace may change.
    fn step(&self) -> u32 {
        let soon = times().look / self.interval.max(1);
        (self.unflushed_messages / 4).min(RARE_INTERVAL).min(u32::try_from(soon).unwrap_or(RARE_INTERVAL))
    }

    /// Decides at time `now` (ticks), after a batch was queued without a look at its messages. The
    /// batch is written at once, unless earlier batches came so quickly that they form a stream.
    pub fn end_batch(&mut self, thread: &ThreadAccount, now: u64) -> Decision {
        self.take_write_time(thread);
        self.seen = now;
        self.bursts.batch(now, self.last);
        if self.time_left(thread, now, false) == 0 {
            return Decision::Flush;
        }
        self.next = self.unflushed_messages + 1;
        Decision::Later(if self.blocked { Deferred::WatchNotified } else { self.bursts.defer() })
    }

    /// Notes a flush from `start` to `end` (ticks). `drained` is false if the kernel did not take
    /// all bytes.
    pub fn record_flush(&mut self, thread: &ThreadAccount, start: u64, end: u64, drained: bool) {
        thread.record_write(start, end);
        let took = end.saturating_sub(start);
        self.cost = match self.cost {
            0 => took.min(times().wake),
            cost => weigh(cost, took),
        };
        (self.last, self.flush_ticks, self.spent) = (end, took, thread.write_time().total);
        self.seen = end;
        self.blocked = !drained;
        self.restart(1);
    }

    /// True if messages were published since the last flush.
    #[inline]
    pub fn has_unflushed(&self) -> bool {
        self.unflushed_messages > 0
    }

    /// Returns the duration of the last flush in ticks.
    #[inline]
    pub fn last_took(&self) -> u64 {
        self.flush_ticks
    }

    /// Restarts the count. The rule looks at the clock again at message number `next`.
    fn restart(&mut self, next: u32) {
        self.bursts.flushed = self.bursts.flushed.wrapping_add(self.unflushed_messages);
        self.bursts.held = false;
        self.unflushed_messages = 0;
        self.checked_messages = 0;
        self.next = next;
    }

    /// Asks again after `messages` more messages, because the last decision does not hold for them.
    #[inline]
    pub fn ask_after(&mut self, messages: u32) {
        self.next = self.unflushed_messages.saturating_add(messages);
    }

    /// Notes that the sweep takes over the queued bytes. The next message asks again.
    #[inline]
    pub fn record_sweep(&mut self) {
        self.restart(1);
    }

    /// Notes that something delayed the owner from the last decision until `now`. The delay is not
    /// a lull.
    #[inline]
    pub fn resume(&mut self, thread: &ThreadAccount, now: u64) {
        thread.record_delegation(now.saturating_sub(self.seen));
        self.bursts.resume(now);
    }

    /// Notes that this thread wrote no bytes, because another thread is writing or the stream is
    /// missing. The next message asks again.
    #[inline]
    pub fn record_no_write(&mut self) {
        self.restart(1);
    }
}

#[cfg(test)]
mod tests;
