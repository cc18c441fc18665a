//! Decides when a publisher wakes its inproc receivers: the flush rule, applied to wake-ups.
//! `conn::ReceiverWakeups` wakes them.

use super::{Link, Pipe};
use crate::conn::{IoSide, ReceiverWakeups};
use crate::idle::thread_account;
use tautline_io::clock;
use tautline_queue::sync::Arc;
use tautline_timing::flush::{Decision, FlushRule};

/// The rule and the receivers that it applies to.
#[derive(Debug)]
pub(crate) struct WakeRule {
    wakeups: Arc<ReceiverWakeups>,
    rule: FlushRule,
}

impl WakeRule {
    /// Returns a set without receivers.
    pub(crate) fn new(io: Arc<dyn IoSide>) -> Self {
        WakeRule { wakeups: ReceiverWakeups::new(io), rule: FlushRule::default() }
    }

    /// Adds a receiver if its peer is inproc. From now on, sending to it does not wake it.
    pub(crate) fn add(&mut self, pipe: &mut Pipe) {
        let out = &mut pipe.outgoing;
        let Link::Inproc(end) = &out.link else { return };
        end.use_ring();
        if !std::mem::replace(&mut out.quiet, true) {
            self.wakeups.add(end.doorbell());
        }
        out.deferred.defer_flush();
    }

    /// Notes that a message, or a part of one, was sent to some receivers.
    #[inline]
    pub(crate) fn record_send(&mut self) {
        if self.rule.count() || self.wakeups.take_hint() {
            self.wake_by_rule();
        }
    }

    #[inline(never)]
    fn wake_by_rule(&mut self) {
        let start = clock::ticks();
        match thread_account(|thread| self.rule.decide(thread, start, 0, 0, false)) {
            Decision::Later(_) => self.wakeups.schedule_ring(),
            Decision::Flush => {
                self.wakeups.ring();
                thread_account(|thread| self.rule.record_flush(thread, start, clock::ticks(), true));
            }
        }
    }
}
