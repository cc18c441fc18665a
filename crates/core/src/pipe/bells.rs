//! Decides when a publisher wakes its inproc receivers: the flush rule, applied to wake-ups.
//! `conn::Summons` does the waking.

use super::Pipe;
use crate::conn::{IoSide, Summons};
use crate::sync::Arc;
use crate::timing::flush::{Decision, FlushRule};
use tautline_io::clock;

/// The rule and the receivers that it applies to.
#[derive(Debug)]
pub(crate) struct Bells {
    summons: Arc<Summons>,
    rule: FlushRule,
}

impl Bells {
    /// Returns a set without receivers.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Self {
        Bells { summons: Summons::new(io), rule: FlushRule::default() }
    }

    /// Adds a receiver if its peer is inproc. From now on, sending to it does not wake it.
    pub(crate) fn add(&mut self, pipe: &mut Pipe) {
        if let Some(bell) = pipe.outgoing.keep_quiet(&pipe.link) {
            self.summons.add(bell);
        }
    }

    /// Notes that a message, or a part of one, was sent to some receivers.
    #[inline]
    pub(crate) fn sent(&mut self) {
        if self.rule.count() || self.summons.take_hint() {
            self.ring_by_rule();
        }
    }

    #[inline(never)]
    fn ring_by_rule(&mut self) {
        let start = clock::ticks();
        match self.rule.decide(start, 0, 0, false) {
            Decision::Later(_) => self.summons.ring_later(),
            Decision::Flush => {
                self.summons.ring();
                self.rule.flushed(start, clock::ticks(), true);
            }
        }
    }
}
