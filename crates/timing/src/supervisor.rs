//! The watch: decides when the I/O thread checks the bytes that owners left queued. The check
//! itself is in `driver::residual`.
//!
//! A working owner writes its messages itself. An owner that has stopped leaves its last messages
//! to the watch. Only time tells the two apart. So the watch looks after 10 µs, and then less and
//! less often while the owner is at work. The end of a stream waits no longer than the stream took.

use super::flush::CLOCK_CHECK_NS;
use super::{SLICE, WAKE};
use crate::clock::nanos_to_ticks;

/// Time to the first look, in nanoseconds. `SLOWEST` is the longest time between two looks while an
/// owner is at work, or while all owners predict when they will write their queued bytes.
const FIRST: u64 = WAKE / 2;
pub(super) const SLOWEST: u64 = 500_000;
/// Time to the next look if all owners write before their threads wait.
const WAITERS: u64 = 2_000_000;
/// Time to the next look at an owner that may have stopped, and to the first look if it is not
/// urgent.
pub const FOLLOW_UP_CHECK_NS: u64 = 10 * WAKE;
/// An owner that has looked at the clock or written within this time is at work. A working owner
/// looks twice as often (`flush`).
const QUIET: u64 = 2 * CLOCK_CHECK_NS;
/// Number of looks without bytes to write before the watch drops a connection.
const IDLE_LOOKS: u32 = 2;
/// The watch drops a connection this long after its last message, even if its owner predicts when
/// it will write.
pub(super) const PREDICTION_TIMEOUT_NS: u64 = 2 * SLICE;

/// The watch of one I/O thread.
#[derive(Debug, Default)]
pub struct FlushSupervisor {
    /// Nanoseconds to the next round if an owner was at work in the last round, otherwise zero.
    interval: u64,
}

/// One round of looks.
#[derive(Debug)]
pub struct SupervisorRound {
    now: u64,
    /// `at_work` is true if the round found an owner at work that does not predict its next write.
    /// `unsure` is true if it found such an owner that is not at work.
    at_work: bool,
    unsure: bool,
    /// True if the round found an owner that writes at the end of a burst.
    bursts: bool,
}

/// When an owner will write its queued bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NextWrite {
    /// Unknown: the watch may have to write them.
    #[default]
    Unknown,
    /// At the predicted end of a burst (`bursts`).
    EndOfBurst,
    /// Before its thread waits (`wait_habit`).
    BeforeWait,
}

/// State of an owner as the watch sees it.
#[derive(Debug, Clone, Copy)]
pub struct OwnerActivity {
    /// Tick at which the owner last looked at the clock or wrote.
    pub worked_at: u64,
    /// When the owner will write its queued bytes.
    pub next_write: NextWrite,
    /// True if bytes of its queue are being written now.
    pub writing: bool,
}

impl OwnerActivity {
    /// The bits of a packed state that contain `next_write`.
    const NEXT_WRITE: u64 = 3;

    /// Returns `worked_at` (ticks, a little earlier) and `next_write` in one number.
    #[inline]
    pub fn pack(worked_at: u64, next_write: NextWrite) -> u64 {
        (worked_at & !Self::NEXT_WRITE) | next_write as u64
    }

    /// Returns the state in a packed number.
    #[inline]
    pub fn unpack(packed: u64, writing: bool) -> OwnerActivity {
        let next_write = match packed & Self::NEXT_WRITE {
            0 => NextWrite::Unknown,
            1 => NextWrite::EndOfBurst,
            _ => NextWrite::BeforeWait,
        };
        OwnerActivity { worked_at: packed & !Self::NEXT_WRITE, next_write, writing }
    }
}

impl FlushSupervisor {
    /// Notes that an owner has stopped or begun. The next rounds follow soon.
    #[inline]
    pub fn restart(&mut self) {
        self.interval = 0;
    }

    /// Ends the round. Returns the nanoseconds to the next one.
    pub fn next(&mut self, round: &SupervisorRound) -> u64 {
        let before = std::mem::take(&mut self.interval);
        match round {
            SupervisorRound { at_work: true, .. } => {
                self.interval = (before * 2).clamp(FIRST, SLOWEST);
                self.interval
            }
            SupervisorRound { unsure: true, .. } => FOLLOW_UP_CHECK_NS,
            SupervisorRound { bursts: true, .. } => SLOWEST,
            _ => WAITERS,
        }
    }
}

impl SupervisorRound {
    /// Begins a round at `now` (ticks).
    #[inline]
    pub fn begin(now: u64) -> SupervisorRound {
        SupervisorRound { now, at_work: false, unsure: false, bursts: false }
    }

    /// True if this owner is at work. If it is not, its queued bytes are written now.
    #[inline]
    pub fn check_owner(&mut self, owner: OwnerActivity) -> bool {
        let at_work = self.now.saturating_sub(owner.worked_at) < nanos_to_ticks(QUIET) || owner.writing;
        match owner.next_write {
            NextWrite::Unknown if at_work => self.at_work = true,
            NextWrite::Unknown => self.unsure = true,
            NextWrite::EndOfBurst => self.bursts = true,
            NextWrite::BeforeWait => {}
        }
        at_work
    }

    /// Returns the number of looks in a row, including this one, that found no bytes to write for
    /// this owner. `idle` is the number before. Returns `None` if the watch drops the connection.
    #[inline]
    pub fn idle(&self, owner: OwnerActivity, idle: u32, at_work: bool, wrote: bool) -> Option<u32> {
        let foresees = owner.next_write != NextWrite::Unknown
            && self.now.saturating_sub(owner.worked_at) < nanos_to_ticks(PREDICTION_TIMEOUT_NS);
        let idle = if at_work || wrote || foresees { 0 } else { idle + 1 };
        (idle < IDLE_LOOKS).then_some(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(watch: &mut FlushSupervisor, at_work: bool, unsure: bool, bursts: bool) -> u64 {
        watch.next(&SupervisorRound { now: 0, at_work, unsure, bursts }) / 1000
    }

    #[test]
    fn checks_become_rare_while_owner_is_active() {
        let mut watch = FlushSupervisor::default();
        let all: Vec<_> = (0..8).map(|_| next(&mut watch, true, false, false)).collect();
        assert_eq!(all, [10, 20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(next(&mut watch, false, true, true), 200, "to check if the stream has ended");
        assert_eq!(next(&mut watch, true, true, false), 10);
        assert_eq!(
            next(&mut watch, false, false, true),
            500,
            "the watch rarely looks at an owner that predicts its writes"
        );
        assert_eq!(next(&mut watch, false, false, false), 2000, "all owners write before they wait");
    }

    #[test]
    fn an_owner_that_looks_at_the_clock_is_at_work() {
        let worked_at = nanos_to_ticks(1_000_000);
        let owner = OwnerActivity { worked_at, next_write: NextWrite::Unknown, writing: false };
        let at_work = |nanos| SupervisorRound::begin(worked_at + nanos_to_ticks(nanos)).check_owner(owner);
        assert!(at_work(7_000), "a look may be late by as much as it takes");
        assert!(!at_work(9_000));
    }

    #[test]
    fn a_packed_state_keeps_the_next_write() {
        for next_write in [NextWrite::Unknown, NextWrite::EndOfBurst, NextWrite::BeforeWait] {
            let owner = OwnerActivity::unpack(OwnerActivity::pack(1_000_003, next_write), true);
            assert_eq!((owner.worked_at, owner.next_write), (1_000_000, next_write));
        }
    }
}
