//! Whether a sender is saturated: it sends as fast as its own work allows, and the time that a write takes is lost to it.
//!
//! Programs in interpreted languages need a microsecond and more for a message, and a write costs them as much as several messages. The
//! usual gap gives them a write for every few. But a program that sends a message every few microseconds because a clock says so looks
//! the same at first, and its messages must not wait. The difference shows after a write: a paced program makes up for the time that
//! the write took, and its next message comes sooner than the others. A saturated one needs as long for that one as for any other.
//!
//! One that has all its messages written singly, one right after the other, must let some wait for that to show. It is tried now and
//! then for a few writes, and more and more rarely when it turns out that it is paced.

/// Evidence from so many writes makes sure.
const SURE: u8 = 6;
const MOST: u8 = 16;
/// A write that speaks against it weighs as much as so many for it.
const AGAINST: u8 = 4;
/// So many writes does a trial last.
const TRIAL: u8 = 4;
/// So many single messages right after one another make the first trial; the second needs twice as many, and so on.
const FIRST_TRIAL: u16 = 64;
const RAREST_TRIAL: u16 = 8192;

/// What is known about one pipe's sender. Times are in clock ticks.
#[derive(Debug)]
pub(super) struct Saturation {
    /// When the first message after the last write came, and how long after it; 0 if nobody looked.
    first: u64,
    lead: u64,
    /// Mean time between messages of the last write.
    interval: u64,
    evidence: u8,
    /// Writes left of the trial.
    trial: u8,
    /// Single messages in a row, each right after the write of the one before, and how many make a trial.
    singles: u16,
    enough: u16,
}

impl Default for Saturation {
    fn default() -> Self {
        Saturation { first: 0, lead: 0, interval: 0, evidence: 0, trial: 0, singles: 0, enough: FIRST_TRIAL }
    }
}

impl Saturation {
    /// The first message after a write has come at `now`, `lead` after the end of the write.
    pub(super) fn begin(&mut self, now: u64, lead: u64) {
        self.first = now;
        self.lead = lead;
    }

    /// Somebody else writes the messages: nothing can be learned from them.
    pub(super) fn forget(&mut self) {
        self.first = 0;
    }

    /// A write of `messages` began at `start`; a write of one costs `cost`, and two messages more than `quiet` apart are no stream.
    pub(super) fn written(&mut self, messages: u32, start: u64, cost: u64, quiet: u64) {
        let first = std::mem::take(&mut self.first);
        if first == 0 {
            return;
        }
        let streams = self.lead < quiet;
        let trial = self.trial > 0;
        self.trial = self.trial.saturating_sub(1);
        if messages > 2 && streams {
            self.interval = start.saturating_sub(first) / u64::from(messages - 1);
            self.evidence = if self.lead * 4 >= self.interval * 3 {
                (self.evidence + 1).min(MOST)
            } else {
                self.evidence.saturating_sub(AGAINST)
            };
        } else if !streams {
            self.evidence = self.evidence.saturating_sub(1);
        }
        if trial && self.trial == 0 {
            let paced = self.evidence == 0;
            self.enough = if paced { (self.enough * 2).min(RAREST_TRIAL) } else { FIRST_TRIAL };
        }
        self.singles = if messages == 1 && self.lead < 2 * cost { self.singles + 1 } else { 0 };
        if self.singles >= self.enough {
            self.singles = 0;
            self.trial = TRIAL;
        }
    }

    /// Whether the next messages shall wait for one another, to see what the sender does then.
    pub(super) fn is_tried(&self) -> bool {
        self.trial > 0 || self.evidence > 0
    }

    /// Whether the sender is saturated, and its messages come no faster than one in `slow`.
    pub(super) fn is_sure(&self, slow: u64) -> bool {
        self.evidence >= SURE && self.interval >= slow
    }

    /// How many messages are likely to come within `time`.
    pub(super) fn within(&self, time: u64) -> u32 {
        u32::try_from(time / self.interval.max(1)).unwrap_or(u32::MAX)
    }
}
