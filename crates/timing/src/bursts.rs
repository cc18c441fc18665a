//! Bursts: counts the messages that a program sends together, and predicts the end of the next
//! burst.

use super::HABIT;
use super::account::ThreadAccount;
use super::flush::times;
use crate::rules::{Rule, is_disabled};

/// After this many correctly predicted bursts in a row, the next burst may be held. If that burst
/// is shorter than predicted, even its first message waits for the I/O thread.
pub(super) const SURE_ENOUGH: u8 = 2 * HABIT;

/// Lengths of the last bursts, and a prediction of the next one. Programs often send the same
/// number of messages together, again and again. If a burst reaches the length of an earlier burst,
/// its last message is written at once and does not wait for the residual timer.
///
/// If the prediction is reliable and a whole burst arrives in less time than a write takes, the
/// first message is also held until the end of the burst. Otherwise the later messages would have
/// to wait until the first one is written.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// Flushed messages of the current burst. Wraps; added to `FlushRule::since`, it gives the
    /// number of messages in the burst.
    pub(super) flushed: u32,
    /// Start of the current burst, and time of the last look at one of its messages.
    pub(super) began: u64,
    seen: u64,
    /// Lengths of the last four bursts. 0 if a burst came too soon after the one before.
    pub(super) lengths: [u32; 4],
    slot: u8,
    /// Number of bursts in a row that left no message queued.
    pub(super) sure: u8,
    /// True if a message of the current burst stayed queued, or if the burst continues a watched
    /// stream.
    left_queued: bool,
    /// True if the current burst is longer than each of the last four.
    overdue: bool,
    /// Average pause before a burst. If another thread interrupts the sender on its core, the
    /// sender also pauses, but for less time.
    pub(super) pause: u64,
    /// Average time from the first message of a burst to its predicted end, without the flushes
    /// between.
    span: u64,
    /// Total time that the thread had spent in flushes when the current burst began.
    spent: u64,
    /// True if the current burst must not be written before its predicted end.
    pub(super) held: bool,
}

impl Bursts {
    /// Looks at a message, the `since`th after the last flush at `last`. Returns whether a burst
    /// probably ends with this message, and the number of messages until the next probable end. The
    /// thread has spent `elsewhere` ticks on writing since the last look; this time is not part of
    /// a pause.
    pub(super) fn check(
        &mut self,
        thread: &ThreadAccount,
        now: u64,
        since: u32,
        last: u64,
        cost: u64,
        elsewhere: u64,
    ) -> (bool, u32) {
        let pause = now.saturating_sub(self.seen.max(last)).saturating_sub(elsewhere);
        if is_disabled(Rule::Bursts) {
            self.left_queued &= pause <= times().quiet;
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
                self.begin(thread, now, since, length, cost);
                self.held = self.can_hold(pause, cost);
            } else if since > 1 {
                self.sure /= 2;
            }
            self.left_queued = streamed;
        }
        self.seen = now;
        let count = self.flushed.wrapping_add(since);
        let ends = count > 1 && self.lengths.contains(&count);
        let further_on = self.lengths.iter().filter_map(|length| length.checked_sub(count));
        let ahead = further_on.filter(|&ahead| ahead > 0).min().unwrap_or(u32::MAX);
        let overdue = !ends && self.lengths.iter().all(|&length| length <= count);
        if overdue && !std::mem::replace(&mut self.overdue, overdue) {
            // The watch was not notified, because the burst was expected to end.
            self.left_queued &= self.sure < HABIT;
        }
        let flushing = thread.write_time().total.saturating_sub(self.spent);
        let elapsed = now.saturating_sub(self.began).saturating_sub(flushing);
        if self.held && elapsed > cost {
            // The prediction failed. Do not hold this burst or the next ones.
            self.held = false;
            self.span = times().wake;
        } else if ends {
            self.span = (self.span * 3 + elapsed.min(times().wake)) / 4;
        }
        (ends, ahead)
    }

    /// Begins a burst at `now` with message `since` after the last flush. The burst before had
    /// `length` messages.
    fn begin(&mut self, thread: &ThreadAccount, now: u64, since: u32, length: u32, cost: u64) {
        let worth_it = now.saturating_sub(self.began) > 4 * cost;
        self.lengths[usize::from(self.slot % 4)] = if worth_it { length } else { 0 };
        self.slot = self.slot.wrapping_add(1);
        self.began = now;
        self.spent = thread.write_time().total;
        self.flushed = 1u32.wrapping_sub(since);
        self.sure = if since == 1 { (self.sure + 1).min(SURE_ENOUGH) } else { 0 };
        self.overdue = false;
    }

    /// True if a burst that has just begun after `pause` may be held.
    pub(super) fn can_hold(&self, pause: u64, cost: u64) -> bool {
        let equal = self.lengths.iter().all(|&length| length > 1 && length == self.lengths[0]);
        equal && self.sure >= SURE_ENOUGH && self.span < cost && pause < times().seldom
    }

    /// Ends a batch at `now`; the last flush was at `last`. Predictions hold for single messages
    /// only, so the count of correct predictions restarts.
    pub(super) fn batch(&mut self, now: u64, last: u64) {
        self.left_queued &= now.saturating_sub(self.seen.max(last)) <= times().quiet;
        self.seen = now;
        self.sure = 0;
    }

    /// Notes that something other than the sender's own work delayed the sender until `now`.
    pub(super) fn resume(&mut self, now: u64) {
        self.seen = now;
    }

    /// Notes that a message stays queued.
    pub(super) fn defer(&mut self) -> Deferred {
        match std::mem::replace(&mut self.left_queued, true) {
            _ if self.sure >= HABIT && !self.overdue => Deferred::Predicted,
            true => Deferred::WatchNotified,
            false => Deferred::Unassigned,
        }
    }
}

/// The thread that will write a message that stays queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferred {
    /// The sender, with the last message of the burst. The watch should check from time to time.
    Predicted,
    /// The sender, before its thread waits.
    UntilWait,
    /// The watch. An earlier message of the burst notified it.
    WatchNotified,
    /// No thread yet.
    Unassigned,
}
