//! When a publisher wakes its inproc receivers (`conn::Summons` is how): the flush rule, applied to
//! wake-ups.

use super::Pipe;
use crate::conn::{IoSide, Summons};
use crate::sync::Arc;
use crate::timing::flush::{Decision, FlushRule};
use tautline_io::clock;

/// The rule and those it is for.
#[derive(Debug)]
pub(crate) struct Bells {
    summons: Arc<Summons>,
    rule: FlushRule,
}

impl Bells {
    /// Without receivers.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Self {
        Bells { summons: Summons::new(io), rule: FlushRule::default() }
    }

    /// One more receiver, if its peer is inproc. What is sent there does not wake it any more.
    pub(crate) fn add(&mut self, pipe: &mut Pipe) {
        if let Some(bell) = pipe.outgoing.keep_quiet(&pipe.link) {
            self.summons.add(bell);
        }
    }

    /// A message, or a part of one, was sent to some of them.
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
