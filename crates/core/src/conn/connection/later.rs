//! What an owner leaves queued, to the residual timer (`driver/residual.rs`) or to the sweep
//! (`driver/sweep.rs`).

use super::Connection;
use crate::conn::pump::Flushed;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, lock};
use crate::timing::flush::Rest;
use crate::timing::watch::Owner;

impl Connection {
    /// Owner: there is no memory for what must be sent. The session ends.
    #[cold]
    pub(crate) fn lose_unsendable(self: &Arc<Self>) {
        let session = lock(&self.pump).session;
        self.has_more(Flushed::Lost(tautline_io::errno::ENOMEM), session);
    }

    /// Owner, after publishing: whether the I/O thread has written a residual since this was last
    /// asked. One load; clears the hint.
    #[inline]
    pub(crate) fn take_hint(&self) -> bool {
        self.hint.take()
    }

    /// Makes the owner look at the clock with its next message.
    pub(crate) fn give_hint(&self) {
        self.hint.give();
        if let Some(hint) = &*lock(&self.shared_hint) {
            hint.give();
        }
    }

    /// I/O thread, which has given the hint and passed a heavy barrier since: from now on only the
    /// owner looks after the queue. What it published before it could see the hint is written here.
    pub(crate) fn write_what_slipped(self: &Arc<Self>) {
        if self.has_pending() {
            self.pump_writable();
        }
    }

    /// Has the I/O thread look after what stays queued. One load if it does already.
    #[inline]
    pub(crate) fn watch_residual(self: &Arc<Self>) {
        if self.watched.is_to_be_handed_over() {
            self.io.watch_residual(self, true);
        }
    }

    /// Owner: the same, at `now` (ticks). True if that took longer than a few nanoseconds.
    #[inline]
    pub(crate) fn leave_to_residual(self: &Arc<Self>, now: u64, rest: Rest) -> bool {
        self.worked_at.store((now & !1) | u64::from(rest == Rest::Foreseen), Relaxed);
        let watched = !self.watched.is_to_be_handed_over();
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
        if self.watched.is_set() {
            let foreseen = self.worked_at.load(Relaxed) & 1;
            self.worked_at.store((now & !1) | foreseen, Relaxed);
        }
    }

    /// The owner as the watch sees it.
    pub(crate) fn owner_at_work(&self) -> Owner {
        let worked_at = self.worked_at.load(Relaxed);
        Owner { worked_at: worked_at & !1, foresees: worked_at & 1 != 0, writing: self.is_being_written() }
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
