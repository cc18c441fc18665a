//! Bursts: how many messages a program sends together, and what can be foreseen from that.

use super::HABIT;
use super::flush::times;
use super::spent::spent;
use crate::ablation::{Rule, without};

/// After this many bursts in a row that ended as foreseen the next one may be held: if that one is
/// shorter for once, even its first message waits for the I/O thread.
pub(super) const SURE_ENOUGH: u8 = 2 * HABIT;

/// How long the last bursts were. Programs often send the same number of messages together, again
/// and again: the last one of a burst as long as an earlier one is written at once, instead of by
/// the residual timer. Where that can be relied upon, and all of a burst is there in less time than
/// a write takes, its first message is held until then as well: else the others would have to wait
/// for it to be written.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// Messages of the current burst that were flushed; wraps, so that with `FlushRule::since` it
    /// gives their number.
    pub(super) flushed: u32,
    /// When the current burst began, and when a message of it was last looked at.
    pub(super) began: u64,
    seen: u64,
    /// The lengths of the last four bursts, 0 if one came too soon after the one before.
    pub(super) lengths: [u32; 4],
    slot: u8,
    /// How many bursts in a row have left nothing behind.
    pub(super) sure: u8,
    /// Of the current burst something was left queued, or it goes on a stream that is watched.
    left: bool,
    /// It is longer than any of the last ones.
    overdue: bool,
    /// Average pause before a burst. A sender that is interrupted by another thread on its core
    /// pauses as well, but not as long.
    pub(super) pause: u64,
    /// Average time from the first message of a burst to its foreseen end, without that of the
    /// flushes between.
    span: u64,
    /// What the thread had spent in flushes when the current burst began.
    spent: u64,
    /// Nothing of the current burst is to be written before its foreseen end.
    pub(super) held: bool,
}

impl Bursts {
    /// A message is looked at, `since` the last flush at `last`. Whether a burst is likely to end
    /// with it, and how many messages further on the next likely end is. The thread has spent
    /// `elsewhere` ticks on writing since the last look, which are no pause.
    pub(super) fn look(&mut self, now: u64, since: u32, last: u64, cost: u64, elsewhere: u64) -> (bool, u32) {
        let pause = now.saturating_sub(self.seen.max(last)).saturating_sub(elsewhere);
        if without(Rule::Bursts) {
            self.left &= pause <= times().quiet;
            self.seen = now;
            (self.sure, self.held) = (0, false);
            return (false, u32::MAX);
        }
        if pause > times().quiet {
            let length = self.flushed.wrapping_add(since).wrapping_sub(1);
            let usual = self.pause;
            self.pause = (usual * 7 + pause.min(times().pause_max)) / 8;
            let whole = self.lengths.contains(&length) || self.lengths.iter().all(|&known| known <= length);
            let streamed = self.seen.saturating_sub(self.began) > times().stream && pause < times().stream;
            if whole || pause > usual / 4 {
                self.begin(now, since, length, cost);
                self.held = self.holds(pause, cost);
            } else if since > 1 {
                self.sure /= 2;
            }
            self.left = streamed;
        }
        self.seen = now;
        let count = self.flushed.wrapping_add(since);
        let ends = count > 1 && self.lengths.contains(&count);
        let further_on = self.lengths.iter().filter_map(|length| length.checked_sub(count));
        let ahead = further_on.filter(|&ahead| ahead > 0).min().unwrap_or(u32::MAX);
        let overdue = !ends && self.lengths.iter().all(|&length| length <= count);
        if overdue && !std::mem::replace(&mut self.overdue, overdue) {
            // The watch was not told, since the burst was believed to end.
            self.left &= self.sure < HABIT;
        }
        let flushing = spent().total.saturating_sub(self.spent);
        let elapsed = now.saturating_sub(self.began).saturating_sub(flushing);
        if self.held && elapsed > cost {
            // Not this time, and not the next times.
            self.held = false;
            self.span = times().wake;
        } else if ends {
            self.span = (self.span * 3 + elapsed.min(times().wake)) / 4;
        }
        (ends, ahead)
    }

    /// A burst begins at `now` with message `since` after the last flush; the one before was of
    /// `length`.
    fn begin(&mut self, now: u64, since: u32, length: u32, cost: u64) {
        let worth_it = now.saturating_sub(self.began) > 4 * cost;
        self.lengths[usize::from(self.slot % 4)] = if worth_it { length } else { 0 };
        self.slot = self.slot.wrapping_add(1);
        self.began = now;
        self.spent = spent().total;
        self.flushed = 1u32.wrapping_sub(since);
        self.sure = if since == 1 { (self.sure + 1).min(SURE_ENOUGH) } else { 0 };
        self.overdue = false;
    }

    /// Whether a burst that has just begun after a pause may be held.
    pub(super) fn holds(&self, pause: u64, cost: u64) -> bool {
        let equal = self.lengths.iter().all(|&length| length > 1 && length == self.lengths[0]);
        !without(Rule::Hold)
            && equal
            && self.sure >= SURE_ENOUGH
            && self.span < cost
            && pause < times().seldom
    }

    /// A batch has ended at `now`; the last flush was at `last`. What was foreseen was about single
    /// messages.
    pub(super) fn batch(&mut self, now: u64, last: u64) {
        self.left &= now.saturating_sub(self.seen.max(last)) <= times().quiet;
        self.seen = now;
        self.sure = 0;
    }

    /// The sender has been kept by something else than its own work until `now`.
    pub(super) fn resume(&mut self, now: u64) {
        self.seen = now;
    }

    /// Something is left queued.
    pub(super) fn leave(&mut self) -> Rest {
        match std::mem::replace(&mut self.left, true) {
            _ if self.sure >= HABIT && !self.overdue => Rest::Foreseen,
            true => Rest::Told,
            false => Rest::Unforeseen,
        }
    }
}

/// Which thread is going to write what a message leaves queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The sender, with the last message of the burst; the watch should look now and then.
    Foreseen,
    /// The watch, which was told with an earlier message of the burst.
    Told,
    /// None yet.
    Unforeseen,
}
