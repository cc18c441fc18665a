//! The watch: when the I/O thread looks after what owners have left queued, which it does in
//! `driver::residual`.
//!
//! An owner at work writes by itself; one that has stopped leaves its last messages to the watch.
//! The two cannot be told apart but by time. So the watch looks after 10 µs, and then less and less
//! often, as long as the owner is at work: the end of a stream waits no longer than the stream
//! took.

use super::flush::LOOK;
use super::{SLICE, WAKE};
use tautline_io::clock::nanos_to_ticks;

/// The first look, in nanoseconds; and the longest time between two while an owner is at work, or
/// if all owners foresee when they will write what they left.
const FIRST: u64 = WAKE / 2;
pub(super) const SLOWEST: u64 = 500_000;
/// The next look at an owner that may have stopped, and the first one where none hurries.
pub(crate) const LATER: u64 = 10 * WAKE;
/// An owner that has looked at the clock or written so recently is at work: it looks twice as often
/// (`flush`).
const QUIET: u64 = 2 * LOOK;
/// Looks that find nothing to write before a connection is let go.
const IDLE_LOOKS: u32 = 2;
/// A connection is let go so long after its last message even if its owner foresees when it will
/// write.
pub(super) const GONE: u64 = 2 * SLICE;

/// The watch of one I/O thread.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Nanoseconds to the next round if an owner was at work in the last one, else zero.
    interval: u64,
}

/// One round of looks.
#[derive(Debug)]
pub(crate) struct Round {
    now: u64,
    /// Owners at work, and others, that do not foresee when they will write.
    at_work: bool,
    unsure: bool,
}

/// An owner as the watch sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    /// When it last looked at the clock or wrote, in ticks.
    pub(crate) worked_at: u64,
    /// It foresees when it will write what it left.
    pub(crate) foresees: bool,
    /// Bytes of its queue are being written just now.
    pub(crate) writing: bool,
}

impl Watch {
    /// An owner has stopped or begun: the next rounds follow soon.
    pub(crate) fn restart(&mut self) {
        self.interval = 0;
    }

    /// The round is over: nanoseconds to the next one.
    pub(crate) fn next(&mut self, round: &Round) -> u64 {
        let before = std::mem::take(&mut self.interval);
        match round {
            Round { at_work: true, .. } => {
                self.interval = (before * 2).clamp(FIRST, SLOWEST);
                self.interval
            }
            Round { unsure: true, .. } => LATER,
            _ => SLOWEST,
        }
    }
}

impl Round {
    /// A round begins at `now` (ticks).
    pub(crate) fn begin(now: u64) -> Round {
        Round { now, at_work: false, unsure: false }
    }

    /// Whether this owner is at work. If it is not, what it left is written now.
    pub(crate) fn is_at_work(&mut self, owner: Owner) -> bool {
        let at_work = self.now.saturating_sub(owner.worked_at) < nanos_to_ticks(QUIET) || owner.writing;
        self.at_work |= at_work && !owner.foresees;
        self.unsure |= !at_work && !owner.foresees;
        at_work
    }

    /// The looks in a row that have found nothing to write for this owner, with this one, after
    /// `idle` before; `None`: its connection is let go.
    pub(crate) fn idle(&self, owner: Owner, idle: u32, at_work: bool, wrote: bool) -> Option<u32> {
        let foresees = owner.foresees && self.now.saturating_sub(owner.worked_at) < nanos_to_ticks(GONE);
        let idle = if at_work || wrote || foresees { 0 } else { idle + 1 };
        (idle < IDLE_LOOKS).then_some(idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(watch: &mut Watch, at_work: bool, unsure: bool) -> u64 {
        watch.next(&Round { now: 0, at_work, unsure }) / 1000
    }

    #[test]
    fn looks_become_rare_while_the_owner_is_at_work() {
        let mut watch = Watch::default();
        let all: Vec<_> = (0..8).map(|_| next(&mut watch, true, false)).collect();
        assert_eq!(all, [10, 20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(next(&mut watch, false, true), 200, "to see whether that is the end");
        assert_eq!(next(&mut watch, true, true), 10);
        assert_eq!(
            next(&mut watch, false, false),
            500,
            "an owner that foresees what it does is looked at rarely"
        );
    }
}
