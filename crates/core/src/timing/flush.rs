//! The flush rule: when a sender writes its queue to the kernel itself, and when it leaves the bytes for later.
//!
//! Pure bookkeeping on the owner's side, one per pipe: time comes in as ticks, decisions go out. The first message of a lull is
//! written at once, unless it is known to be that of a short burst (`bursts`); a stream is written in large pieces; what stays behind is covered by the I/O thread's residual timer
//! (`driver::residual`). `docs/architecture.md` has the reasons for the numbers.

use super::bursts::Bursts;
pub(crate) use super::bursts::Rest;
use super::saturation::Saturation;
use crate::sync::thread_pointer;
use std::cell::Cell;
use std::sync::OnceLock;

/// Pending bytes that are always worth a write: what loopback TCP carries in one segment, 64 KiB but for the headers. A few bytes more make a
/// second segment of them, which costs as much as the first one but for copying.
pub(crate) const FULL_BYTES: u64 = 64 * 1024 - 256;

/// Whether `pending` bytes are a full write: another message of `len` bytes would not go into the same segment.
pub(crate) fn is_full_write(pending: u64, len: usize) -> bool {
    pending + framed(len) > FULL_BYTES
}

/// Bytes on the wire of a message of one part.
fn framed(len: usize) -> u64 {
    len as u64 + if len > 255 { 9 } else { 2 }
}

/// The rule's times in clock ticks.
#[derive(Debug)]
pub(super) struct Times {
    /// Least time between two writes of single messages.
    floor: u64,
    /// Longest gap between two writes while a stream flows.
    gap_max: u64,
    /// The same for a saturated sender whose messages come no faster than one in `slow`.
    gap_saturated: u64,
    slow: u64,
    /// Time between two looks at the clock in a stream.
    look: u64,
    /// How long the kernel's "full" is believed.
    blocked: u64,
    /// Longest cost of one write that is averaged; above it the thread was descheduled.
    pub(super) cost_max: u64,
    /// So long without a message, and the next one begins a burst.
    pub(super) quiet: u64,
    /// What has gone on for so long, with no longer pauses, is a stream: its end may wait for the residual timer.
    pub(super) stream: u64,
    /// Pauses between bursts count as no longer than this.
    pub(super) pause_max: u64,
    /// After a longer one nothing is held: it may be that nobody looks after it.
    pub(super) seldom: u64,
    /// A thread that does anything but flushing for so long sends to no crowd (see `crowd`).
    pub(super) crowd: u64,
}

pub(super) fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let ticks = tautline_io::clock::nanos_to_ticks;
        Times {
            floor: ticks(500),
            gap_max: ticks(8_000),
            gap_saturated: ticks(64_000),
            slow: ticks(150),
            look: ticks(1_000),
            blocked: ticks(20_000),
            cost_max: ticks(15_000),
            quiet: ticks(10_000),
            stream: ticks(200_000),
            pause_max: ticks(1_000_000),
            seldom: ticks(10_000_000),
            crowd: ticks(50_000),
        }
    })
}

thread_local! {
    /// Ticks that this thread has spent in flushes, of whatever pipe.
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// Ticks that this thread has spent in flushes.
pub(super) fn spent() -> u64 {
    SPENT.get()
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
    /// End of the last flush.
    last: u64,
    /// Average cost of a flush of one message.
    cost: u64,
    /// Current gap between flushes of a stream.
    gap: u64,
    /// What the last flush of a stream took.
    took: u64,
    /// The kernel's buffer was full at the last flush.
    blocked: bool,
    /// The last flush took less than a system call: there is nothing to be saved by waiting for more.
    cheap: bool,
    /// Of the batch that is being queued a part is written already.
    long_batch: bool,
    /// The message that is being written has not been looked at but for being a reply.
    unlearned: bool,
    /// What the thread had spent in flushes at the end of the last one, and which thread that was: a socket may be handed from one to another,
    /// whose account is its own.
    spent: u64,
    thread: usize,
    bursts: Bursts,
    saturation: Saturation,
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

    /// Decides at time `now` (ticks) with `pending` bytes queued, the last message being `len` bytes long. For a `reply` a peer waits.
    pub(crate) fn decide(&mut self, now: u64, pending: u64, len: usize, reply: bool) -> Decision {
        let due = self.is_due(now, reply);
        if due && reply && self.since == 1 {
            // Somebody waits for it, so it goes whatever is foreseen; what is to be learned from it can wait until it is written.
            self.unlearned = true;
            return Decision::Flush;
        }
        let times = times();
        if self.since == 1 {
            self.saturation.begin(now, now.saturating_sub(self.last));
        }
        if self.blocked {
            // Whoever waits for the kernel has not come to the end of a burst.
            self.bursts.resume(now);
        }
        let (ends, ahead) = self.bursts.look(now, self.since, self.last, self.cost);
        self.bursts.held &= !self.blocked && !reply;
        let due = due && (reply || !self.fills_soon(now, pending));
        if due && !self.bursts.held || !self.blocked && (ends || is_full_write(pending, len)) {
            return Decision::Flush;
        }
        let step = if self.since < 4 {
            1
        } else {
            let room = if self.blocked {
                // It is the time that counts then.
                u32::MAX
            } else {
                (FULL_BYTES.saturating_sub(pending) / framed(len)) as u32
            };
            let near = self.saturation.within(times.quiet / 2);
            (self.since / 4).min(self.soon(now)).min(room).min(ahead).min(near).max(1)
        };
        self.next = self.since + step;
        // The I/O thread knows of a full kernel.
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// Looks at a reply, which was decided to be written at `now`.
    fn learn(&mut self, now: u64) {
        self.saturation.begin(now, now.saturating_sub(self.last));
        if self.blocked {
            self.bursts.resume(now);
        }
        self.bursts.look(now, self.since, self.last, self.cost);
    }

    /// After how many more messages of a stream the clock is looked at.
    fn soon(&self, now: u64) -> u32 {
        let elapsed = now.saturating_sub(self.last).max(1);
        (u64::from(self.since) * times().look / elapsed).clamp(16, 64) as u32
    }

    /// Whether a stream, at its present pace, has enough for a full write before it could have written what there is now: about as long as
    /// its last flush took, and no longer than twice that. A flush to several peers takes that of all of them; one that took even longer
    /// was interrupted.
    fn fills_soon(&self, now: u64, pending: u64) -> bool {
        let elapsed = now.saturating_sub(self.last);
        let longest = self.took.min(times().gap_saturated) * 2;
        let missing = FULL_BYTES.saturating_sub(pending);
        let streams = self.since >= 4 && !self.blocked;
        streams && elapsed < longest && missing.saturating_mul(elapsed) < pending.saturating_mul(longest)
    }

    /// The gap by the size of the last flushes, or what is good for a saturated sender.
    fn stream_gap(&self) -> u64 {
        let times = times();
        if self.saturation.is_sure(times.slow) && !self.cheap {
            self.gap.max(times.gap_saturated)
        } else if self.saturation.is_tried() {
            self.gap.max(times.gap_max)
        } else {
            self.gap
        }
    }

    /// Whether enough time has passed since the last flush.
    fn is_due(&self, now: u64, reply: bool) -> bool {
        let times = times();
        let elapsed = now.saturating_sub(self.last);
        let gap = if reply {
            // All that the peer has sent is answered: nothing would be gained by waiting for more.
            self.gap
        } else {
            // With many peers the flushes of the others make each one's gap pass: half of the time must be left for messages.
            let here = self.thread == thread_pointer();
            let others = if here { SPENT.get().saturating_sub(self.spent) } else { 0 };
            self.stream_gap().max(self.cost / 4).max(others.saturating_mul(2))
        };
        // Or what a write costs, where that is known and less: in shared memory.
        let floor = if self.cost == 0 { times.floor } else { times.floor.min(self.cost) };
        let gap = gap.max(floor);
        elapsed >= if self.blocked { gap.max(times.blocked) } else { gap }
    }

    /// So much of a batch is queued that a part of it is written before its end.
    pub(crate) fn begin_long_batch(&mut self) {
        self.long_batch = true;
    }

    /// All of it is written, by whatever rule.
    pub(crate) fn end_long_batch(&mut self) {
        self.long_batch = false;
    }

    /// Decides at time `now` (ticks), when a batch has been queued of which nothing was looked at: it is written at once, unless others
    /// have come before it so quickly that they are a stream. The end of a long one is, too: to have somebody else look after it costs
    /// more than one write on top of those for each 64 KiB.
    pub(crate) fn end_batch(&mut self, now: u64) -> Decision {
        self.saturation.forget();
        self.bursts.batch(now, self.last);
        let long = std::mem::take(&mut self.long_batch);
        if self.is_due(now, false) || long && !self.blocked {
            return Decision::Flush;
        }
        self.next = self.since + 1;
        Decision::Later(if self.blocked { Rest::Told } else { self.bursts.leave() })
    }

    /// Notes a flush that began at `start` and ended at `end` (ticks); `drained` unless the kernel would not take all.
    pub(crate) fn flushed(&mut self, start: u64, end: u64, drained: bool) {
        let times = times();
        if std::mem::take(&mut self.unlearned) {
            self.learn(start);
        }
        if drained {
            self.saturation.written(self.since, start, self.cost, times.quiet);
        }
        if self.since >= 4 {
            self.gap = (self.gap * 2).clamp(times.floor, times.gap_max);
        } else {
            self.gap /= 2;
            if self.since == 1 {
                self.cost = (self.cost * 7 + end.saturating_sub(start).min(times.cost_max)) / 8;
            }
        }
        let took = end.saturating_sub(start);
        self.took = if self.since >= 4 { took } else { 0 };
        self.cheap = took > 0 && took < times.floor;
        self.spent = SPENT.get().wrapping_add(took);
        SPENT.set(self.spent);
        self.thread = thread_pointer();
        self.blocked = !drained;
        self.last = end;
        self.restart(1);
    }

    /// Whether messages were published since the last flush.
    pub(crate) fn has_some(&self) -> bool {
        self.since > 0
    }

    /// What the last flush of a stream took, in ticks; 0 if it was none.
    pub(crate) fn last_took(&self) -> u64 {
        self.took
    }

    /// Counts anew, and looks at the clock with the message of number `next`.
    fn restart(&mut self, next: u32) {
        self.bursts.flushed = self.bursts.flushed.wrapping_add(self.since);
        self.bursts.held = false;
        self.since = 0;
        self.next = next;
    }

    /// Asks again after so many messages, for what was last decided is not true of them.
    pub(crate) fn ask_after(&mut self, messages: u32) {
        self.next = self.since.saturating_add(messages);
    }

    /// Notes that the sweep looks after what is queued: the next message asks again.
    pub(crate) fn swept(&mut self) {
        self.saturation.forget();
        self.restart(1);
    }

    /// Notes that after the last decision something kept the sender until `now`, which is no lull.
    pub(crate) fn resume(&mut self, now: u64) {
        self.bursts.resume(now);
    }

    /// Notes that somebody else holds the pump: look again after a few messages.
    pub(crate) fn contended(&mut self) {
        self.unlearned = false;
        self.saturation.forget();
        self.restart(8);
    }
}

#[cfg(test)]
mod tests;
