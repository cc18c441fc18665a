//! What an owner leaves queued, to the residual timer (`driver/residual.rs`) or to the sweep (`driver/sweep.rs`).

use super::Connection;
use crate::conn::flush::Rest;
use crate::conn::pump::Flushed;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use crate::sync::atomic::fence;
use crate::sync::{Arc, lock};

impl Connection {
    /// Owner: there is no memory for what must be sent. The session ends.
    #[cold]
    pub(crate) fn lose_unsendable(self: &Arc<Self>) {
        let session = lock(&self.pump).session;
        self.has_more(Flushed::Lost(tautline_io::errno::ENOMEM), session);
    }

    /// Has the I/O thread look after what stays queued. One load if it does already.
    #[inline]
    pub(crate) fn watch_residual(self: &Arc<Self>) {
        // Pairs with the fence in the timer's disarming: it clears the flag and then looks at the queue's tail once more.
        fence(SeqCst);
        if !self.residual_armed.load(Relaxed) && !self.residual_armed.swap(true, AcqRel) {
            self.io.watch_residual(self, true);
        }
    }

    /// Owner: the same, at `now` (ticks). True if that took longer than a few nanoseconds.
    #[inline]
    pub(crate) fn leave_to_residual(self: &Arc<Self>, now: u64, rest: Rest) -> bool {
        self.worked_at.store((now & !1) | u64::from(rest == Rest::Foreseen), Relaxed);
        fence(SeqCst);
        let watched = self.residual_armed.load(Relaxed) || self.residual_armed.swap(true, AcqRel);
        let soon = rest == Rest::Unforeseen;
        if !watched {
            self.io.watch_residual(self, soon);
        } else if soon {
            self.io.hurry_residual();
        }
        !watched || soon
    }

    /// Owner: has written all that was queued, at `now` (ticks), and may go on.
    #[inline]
    pub(crate) fn note_work(&self, now: u64) {
        if self.residual_armed.load(Relaxed) {
            let foreseen = self.worked_at.load(Relaxed) & 1;
            self.worked_at.store((now & !1) | foreseen, Relaxed);
        }
    }

    /// When the owner was last at work, in clock ticks, and whether it foresaw when it would write what it left queued.
    pub(crate) fn worked_at(&self) -> (u64, bool) {
        let worked_at = self.worked_at.load(Relaxed);
        (worked_at & !1, worked_at & 1 != 0)
    }

    /// Owner: leaves what is queued to the sweep, if it is not already; the round of the sweep.
    pub(crate) fn leave_to_sweep(self: &Arc<Self>) -> Option<u32> {
        self.swept.set().then(|| self.io.write_soon(self))
    }

    /// Whether the sweep has nothing to do just now.
    pub(crate) fn sweeper_is_idle(&self) -> bool {
        self.io.sweeper_is_idle()
    }
}
