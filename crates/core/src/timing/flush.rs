//! The flush rule: when an owner writes what it has queued to the kernel itself, and when it leaves
//! the bytes for later.
//!
//! *Writing may take a share of a thread's time.* After a write the thread does other things for a
//! multiple of the time that the write took; what it queues meanwhile goes with the next one. So
//! the faster messages come, or the more a write costs, the more of them share one; and a thread
//! that sends to many peers writes no more often than one that sends to a single peer. What the
//! rule needs to know it measures.
//!
//! Writing may take a third of the time where something else than the sender's own work sets its
//! pace (`pace`): a message that waits there is late. A sender that is busy loses the time of each
//! write, so it may take a ninth.
//!
//! Waiting gains nothing, and the owner writes at once,
//!
//! - when the write is full: one more message would cost as much again ([`is_full_write`]);
//! - when a message comes alone: writing each one takes no more than two thirds of the time;
//! - when the message is an answer, which a peer waits for, unless the last write has ended just
//!   now;
//! - when a burst ends that was foreseen (`bursts`), which may then be written whole.
//!
//! The first message of a lull is written at once by the share alone. What stays behind is covered
//! by the watch of the I/O thread (`watch`). Time comes in as ticks of the clock, decisions go out;
//! one rule for each pipe.

use super::bursts::Bursts;
pub(crate) use super::bursts::Rest;
use super::pace::{Pace, weigh};
use super::spent::{self, spent};
use super::{MOMENT, SEGMENT, SELDOM, WAKE, watch};
use crate::ablation::{Rule, without};
use std::sync::OnceLock;

/// Pending bytes that are always worth a write: a segment but for the headers. A few bytes more are
/// handed over by themselves, which costs as much again but for copying.
pub(crate) const FULL_BYTES: u64 = SEGMENT as u64 - 256;

/// Whether `pending` bytes are a full write: another message of `len` bytes would not go into the
/// same segment.
pub(crate) fn is_full_write(pending: u64, len: usize) -> bool {
    pending + framed(len) > FULL_BYTES
}

/// Bytes on the wire of a message of one part.
pub(crate) fn framed(len: usize) -> u64 {
    len as u64 + if len > 255 { 9 } else { 2 }
}

/// After a write a thread does other things for this multiple of the time that it took.
const SHARE: u64 = 2;
/// The same for a sender whose own work sets its pace.
const BUSY_SHARE: u64 = 8;

/// Nanoseconds between two looks at the clock, at most.
pub(super) const LOOK: u64 = WAKE / 5;

/// The times of the rules in clock ticks.
#[derive(Debug)]
pub(super) struct Times {
    /// A write counts as no less: what it costs the peer to find it, at the least.
    least: u64,
    /// No message waits longer than this for others: half of the time that a peer looks for
    /// messages before it sleeps (`idle`). To wake it costs more than several writes.
    longest: u64,
    /// The same for a sender whose own work sets its pace, which gains more than waking costs.
    busy_longest: u64,
    /// Time between two looks at the clock, at most: an owner that has not looked for twice as long
    /// counts as gone (`watch`).
    look: u64,
    /// What it takes to wake a peer that makes room: for so long the kernel's "full" is believed.
    /// A write that took longer was interrupted.
    pub(super) wake: u64,
    /// So long without a message, and the next one begins a burst.
    pub(super) quiet: u64,
    /// What has gone on for so long, with no longer pauses, is a stream: its end may wait for the
    /// watch.
    pub(super) stream: u64,
    /// Pauses between bursts count as no longer than this.
    pub(super) pause_max: u64,
    /// After a longer one nothing is held: it may be that no watch looks after it.
    pub(super) seldom: u64,
    /// A thread that does anything but flushing for so long sends to no crowd (see `crowd`).
    pub(super) crowd: u64,
}

pub(super) fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = tautline_io::clock::nanos_to_ticks;
        Times {
            least: ticks(1_000),
            longest: ticks(WAKE / 2),
            busy_longest: ticks(64_000),
            look: ticks(LOOK),
            wake: ticks(WAKE),
            quiet: ticks(WAKE / 2),
            stream: ticks(watch::LATER),
            pause_max: ticks(MOMENT),
            seldom: ticks(watch::GONE / 2),
            crowd: ticks(50_000),
        }
    })
}

/// What to do after a message was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Write now.
    Flush,
    /// Leave it queued.
    Later(Rest),
}

/// The state of the rule for one pipe. What each message touches comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct FlushRule {
    /// Messages since the last flush.
    since: u32,
    /// The number of messages at which the clock is looked at next.
    next: u32,
    /// Messages since the last flush at the last look, when that was, and what the thread had spent
    /// on writing by then.
    looked: u32,
    seen: u64,
    spent: u64,
    /// End of the last flush, and what it took.
    last: u64,
    took: u64,
    /// Average time from one message to the next, without writes.
    interval: u64,
    /// Average cost of a flush, without those that were interrupted.
    cost: u64,
    /// The kernel's buffer was full at the last flush.
    blocked: bool,
    pace: Pace,
    bursts: Bursts,
}

impl FlushRule {
    /// Counts a published message; true if [`FlushRule::decide`] must be asked.
    #[inline]
    pub(crate) fn count(&mut self) -> bool {
        self.since += 1;
        self.since >= self.next
    }

    /// Messages since the last flush, or since the sweep was last left some.
    #[inline]
    pub(crate) fn count_so_far(&self) -> u32 {
        self.since
    }

    /// Decides at time `now` (ticks) with `pending` bytes queued, the last message being `len`
    /// bytes long. For a `reply` a peer waits.
    pub(crate) fn decide(&mut self, now: u64, pending: u64, len: usize, reply: bool) -> Decision {
        if reply && self.since == 1 && self.time_left(now, true) == 0 {
            // The peer waits, and nothing is to be learned from it.
            return Decision::Flush;
        }
        let elsewhere = self.spent_elsewhere();
        let alone = self.comes_alone(now, elsewhere);
        if self.blocked {
            // An owner that waits for the kernel has not come to the end of a burst.
            self.bursts.resume(now);
        }
        let (ends, ahead) = self.bursts.look(now, self.since, self.last, self.cost, elsewhere);
        self.bursts.held &= !self.blocked && !reply;
        let left = self.time_left(now, reply);
        let due = left == 0 || alone && !self.blocked;
        if due && !self.bursts.held || !self.blocked && (ends || is_full_write(pending, len)) {
            return Decision::Flush;
        }
        let room = match self.blocked {
            // It is the time that counts then.
            true => u32::MAX,
            false => (FULL_BYTES.saturating_sub(pending) / framed(len)) as u32,
        };
        self.next = self.since + self.step().min(room).min(ahead).max(1);
        // The I/O thread knows of a full kernel.
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// What the thread has spent on writing since the last look at this pipe. (One that was handed
    /// another thread's socket takes that one's account for its own, once.)
    fn spent_elsewhere(&mut self) -> u64 {
        let total = spent().total;
        let elsewhere = total.saturating_sub(std::mem::replace(&mut self.spent, total));
        if without(Rule::Elsewhere) { 0 } else { elsewhere }
    }

    /// Learns the pace of the messages since the last look. Whether they come alone.
    fn comes_alone(&mut self, now: u64, elsewhere: u64) -> bool {
        let times = times();
        if self.since == 1 {
            let lead = now.saturating_sub(self.last).saturating_sub(elsewhere);
            if lead >= times.quiet {
                self.pace = Pace::default();
            } else if self.took <= self.cost * 2 {
                self.pace.note(lead, self.took);
            }
        }
        let messages = self.since.saturating_sub(std::mem::replace(&mut self.looked, self.since)).max(1);
        let passed = now.saturating_sub(std::mem::replace(&mut self.seen, now));
        let interval = passed.saturating_sub(elsewhere) / u64::from(messages);
        // A longer one is a lull.
        if interval < times.busy_longest {
            self.interval = (self.interval * 3 + interval) / 4;
        }
        !without(Rule::Alone) && !self.is_busy() && self.interval.min(interval) * 2 >= self.cost
    }

    /// Whether the sender sends as fast as its own work allows.
    fn is_busy(&self) -> bool {
        !without(Rule::Busy) && self.pace.is_set_by_work(self.interval)
    }

    /// How long the thread does other things before it writes again: 0 if it may write now.
    fn time_left(&self, now: u64, reply: bool) -> u64 {
        let times = times();
        let gap = |took: u64, share: u64, longest: u64| (took.max(times.least) * share).min(longest);
        let spent = spent();
        let (since, gap) = match reply {
            true => (self.last, self.took.min(times.least)),
            false if self.is_busy() => (spent.last, gap(spent.took, BUSY_SHARE, times.busy_longest)),
            false => (spent.last, gap(spent.took, SHARE, times.longest)),
        };
        (since + if self.blocked { gap.max(times.wake) } else { gap }).saturating_sub(now)
    }

    /// After how many more messages the clock is looked at: a quarter of those since the last
    /// flush, as a look costs as much as to queue a small message. Never many, for the pace may
    /// change.
    fn step(&self) -> u32 {
        let soon = times().look / self.interval.max(1);
        (self.since / 4).min(SELDOM).min(u32::try_from(soon).unwrap_or(SELDOM))
    }

    /// Decides at time `now` (ticks), when a batch has been queued of which nothing was looked at:
    /// it is written at once, unless others have come before it so quickly that they are a stream.
    pub(crate) fn end_batch(&mut self, now: u64) -> Decision {
        self.spent_elsewhere();
        self.seen = now;
        self.bursts.batch(now, self.last);
        if self.time_left(now, false) == 0 {
            return Decision::Flush;
        }
        self.next = self.since + 1;
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// Notes a flush that began at `start` and ended at `end` (ticks); `drained` unless the kernel
    /// would not take all.
    pub(crate) fn flushed(&mut self, start: u64, end: u64, drained: bool) {
        spent::write(start, end);
        let took = end.saturating_sub(start);
        self.cost = match self.cost {
            0 => took.min(times().wake),
            cost => weigh(cost, took),
        };
        (self.last, self.took, self.spent) = (end, took, spent().total);
        self.seen = end;
        self.blocked = !drained;
        self.restart(1);
    }

    /// Whether messages were published since the last flush.
    pub(crate) fn has_some(&self) -> bool {
        self.since > 0
    }

    /// What the last flush took, in ticks.
    pub(crate) fn last_took(&self) -> u64 {
        self.took
    }

    /// Counts anew, and looks at the clock with the message of number `next`.
    fn restart(&mut self, next: u32) {
        self.bursts.flushed = self.bursts.flushed.wrapping_add(self.since);
        self.bursts.held = false;
        self.since = 0;
        self.looked = 0;
        self.next = next;
    }

    /// Asks again after `messages` more, for what was last decided is not true of them.
    pub(crate) fn ask_after(&mut self, messages: u32) {
        self.next = self.since.saturating_add(messages);
    }

    /// Notes that the sweep looks after what is queued: the next message asks again.
    pub(crate) fn swept(&mut self) {
        self.restart(1);
    }

    /// Notes that after the last decision something kept the owner until `now`, which is no lull.
    pub(crate) fn resume(&mut self, now: u64) {
        spent::delegate(now.saturating_sub(self.seen));
        self.bursts.resume(now);
    }

    /// Notes that nothing was written, as another thread writes or there is no stream: the next
    /// message asks again.
    pub(crate) fn not_written(&mut self) {
        self.restart(1);
    }
}

#[cfg(test)]
mod tests;
