//! Bytes that an owner leaves queued for the residual timer (`driver/residual.rs`) or the sweep
//! (`driver/sweep.rs`).

use super::Connection;
use crate::conn::pump::Flushed;
use crate::conn::unwritten;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, lock};
use tautline_timing::flush::Deferred;
use tautline_timing::supervisor::{NextWrite, OwnerActivity};

impl Connection {
    /// Owner: ends the session, because there is no memory for a message that must be sent.
    #[cold]
    pub(crate) fn lose_unsendable(self: &Arc<Self>) {
        let session = lock(&self.pump).session;
        self.finish_flush(Flushed::Lost(tautline_io::errno::ENOMEM), session);
    }

    /// Makes the owner look at the clock with its next message.
    pub(crate) fn give_hint(&self) {
        self.hint.give();
        if let Some(hint) = &*lock(&self.shared_hint) {
            hint.give();
        }
    }

    /// Called by the I/O thread, which has given the hint and passed a heavy barrier since. From
    /// now on only the owner handles the queue. Messages that it published before it could see the
    /// hint are written here.
    pub(crate) fn flush_missed(self: &Arc<Self>) {
        if self.has_pending() {
            self.pump_writable();
        }
    }

    /// I/O thread: writes the queued bytes of an owner that adds no more. Waits for other threads
    /// that write, or that hold the pump's lock for a look. Arms write interest if the kernel is
    /// full. Returns `None` if the system refuses that.
    pub(crate) fn pump_last(self: &Arc<Self>) -> Option<Flushed> {
        loop {
            match self.try_flush() {
                None => drop(lock(&self.pump)),
                Some(Flushed::Drained) if self.has_unsent() => {}
                Some(Flushed::Blocked) if !self.want_write() => return None,
                flushed => return flushed,
            }
        }
    }

    /// Makes the I/O thread watch the queued bytes. Costs one load if it already does.
    #[inline]
    pub(crate) fn watch_residual(self: &Arc<Self>) {
        if self.residual_mark.claim_handover() {
            self.io.watch_residual(self, true);
        }
    }

    /// Owner: makes the I/O thread watch the queued bytes, at `now` (ticks). `rest` names the
    /// thread that will write them. Returns true if the call took longer than a few nanoseconds.
    ///
    /// If no thread would write them, this thread does before it waits. If it probably waits soon,
    /// the I/O thread need not hurry.
    #[inline]
    pub(crate) fn leave_to_residual(self: &Arc<Self>, now: u64, rest: Deferred) -> bool {
        let next_write = match rest {
            Deferred::Predicted => NextWrite::EndOfBurst,
            Deferred::WatchNotified => NextWrite::Unknown,
            Deferred::Unassigned | Deferred::UntilWait => {
                match unwritten::remember(self, now, rest == Deferred::Unassigned) {
                    true => NextWrite::BeforeWait,
                    false => NextWrite::Unknown,
                }
            }
        };
        self.worked_at.store(OwnerActivity::pack(now, next_write), Relaxed);
        let watched = !self.residual_mark.claim_handover();
        let soon = next_write == NextWrite::Unknown && rest != Deferred::WatchNotified;
        if !watched {
            self.io.watch_residual(self, soon);
        } else if soon {
            self.io.hurry_residual();
        }
        !watched || soon
    }

    /// Owner: notes that it has written all queued bytes at `now` (ticks), and may continue.
    #[inline]
    pub(crate) fn note_work(&self, now: u64) {
        if self.residual_mark.is_set() {
            let next_write = OwnerActivity::unpack(self.worked_at.load(Relaxed), false).next_write;
            self.worked_at.store(OwnerActivity::pack(now, next_write), Relaxed);
        }
    }

    /// Returns the owner's state as the watch sees it.
    pub(crate) fn owner_at_work(&self) -> OwnerActivity {
        OwnerActivity::unpack(self.worked_at.load(Relaxed), self.is_being_written())
    }
}
