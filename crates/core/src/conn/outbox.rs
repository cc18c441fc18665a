//! Bytes that an owner leaves queued, and the thread that writes them.
//!
//! The owner itself writes them before it next waits, for whatever socket (`timing::wait_habit`
//! decides what this is worth): each thread has a list of such connections. The residual watch of
//! the I/O thread (`driver/residual.rs`) still covers these bytes, because the owner may compute,
//! or wait elsewhere. In a crowd, the sweep (`driver/sweep.rs`) writes them.

use super::{Connection, Flushed, Handover};
use crate::idle::thread_account;
use std::cell::{Cell, RefCell};
use std::sync::Weak;
use tautline_io::{clock, fork};
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, lock, try_lock};
use tautline_timing::flush::Deferred;
use tautline_timing::supervisor::{NextWrite, OwnerActivity};
use tautline_timing::wait_habit::WaitHabit;

/// Most connections that a thread remembers.
const MAX_CONNECTIONS: usize = 8;

/// Weak, because the thread may close the socket and never wait again.
type List = Vec<Weak<Connection>>;

thread_local! {
    /// The list, and the process that it belongs to. A forked child must not write the messages
    /// of its parent.
    static UNWRITTEN: RefCell<(u32, List)> = const { RefCell::new((0, Vec::new())) };
    static HABIT: Cell<WaitHabit> = const { Cell::new(WaitHabit::new()) };
}

/// Calls `change` for the habit of this thread.
fn with_habit<R>(change: impl FnOnce(&mut WaitHabit) -> R) -> R {
    let mut habit = HABIT.get();
    let result = change(&mut habit);
    HABIT.set(habit);
    result
}

/// Calls `f` for the list of this thread. `None` while the thread ends, because it sends no more.
fn with_list<R>(f: impl FnOnce(&mut List) -> R) -> Option<R> {
    let call = |unwritten: &RefCell<(u32, List)>| {
        let (process, list) = &mut *unwritten.try_borrow_mut().ok()?;
        if *process != fork::generation() {
            *process = fork::generation();
            list.clear();
        }
        Some(f(list))
    };
    UNWRITTEN.try_with(call).ok().flatten()
}

/// True if this thread will probably wait soon.
#[inline]
pub(crate) fn is_wait_expected() -> bool {
    HABIT.get().is_expected()
}

/// True if a message of this thread to `connection` may stay queued at `now` (ticks) until the
/// thread waits. Messages to several connections cannot leave together, so this is false if bytes
/// of others are queued.
pub(crate) fn may_hold(connection: &Arc<Connection>, now: u64) -> bool {
    let may_hold = |list: &mut List| match &list[..] {
        [] => true,
        [only] => only.as_ptr() == Arc::as_ptr(connection) && with_habit(|habit| habit.may_hold(now)),
        _ => false,
    };
    with_list(may_hold).unwrap_or(false)
}

/// Called by a thread that leaves bytes of `connection` queued at `now` (ticks). `joins` is true if
/// they follow other bytes that were sent since the thread last waited. Returns true if the thread
/// will probably write them soon.
fn remember(connection: &Arc<Connection>, now: u64, joins: bool) -> bool {
    let remember = |list: &mut List| {
        let known = list.iter().any(|known| known.as_ptr() == Arc::as_ptr(connection));
        if !known && list.len() == MAX_CONNECTIONS {
            return false;
        }
        with_habit(|habit| habit.leave(now, list.is_empty(), joins || known));
        if !known {
            list.push(Arc::downgrade(connection));
        }
        is_wait_expected()
    };
    with_list(remember).unwrap_or(false)
}

/// Called by a thread that is about to wait: writes the bytes that it has left queued.
pub(crate) fn write_unwritten() {
    let Some(mut list) = with_list(std::mem::take).filter(|list| !list.is_empty()) else { return };
    let start = clock::ticks();
    let mut wrote = false;
    for connection in list.drain(..).filter_map(|connection| connection.upgrade()) {
        if connection.has_pending() && connection.pump_writable() == Some(Flushed::Drained) {
            connection.give_hint();
            wrote = true;
        }
    }
    with_habit(|habit| habit.wait(start, wrote));
    if wrote {
        thread_account(|thread| thread.record_write(start, clock::ticks()));
    }
    // Put the vector back to keep its memory.
    with_list(|kept| *kept = list);
}

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
        if let Some((hint, _)) = &*lock(&self.followed) {
            hint.give();
        }
    }

    /// Makes the I/O thread watch the queued bytes, and check them `soon` or a little later. Costs
    /// one load if it already does. Returns true if it did not.
    #[inline]
    pub(crate) fn watch_residual(self: &Arc<Self>, soon: bool) -> bool {
        let is_new = self.residual_mark.claim_handover();
        if is_new {
            self.io.hand_over(Handover::Watch { connection: self.clone(), soon });
        }
        is_new
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
                match remember(self, now, rest == Deferred::Unassigned) {
                    true => NextWrite::BeforeWait,
                    false => NextWrite::Unknown,
                }
            }
        };
        self.worked_at.store(OwnerActivity::pack(now, next_write), Relaxed);
        let soon = next_write == NextWrite::Unknown && rest != Deferred::WatchNotified;
        let is_new = self.watch_residual(soon);
        if soon && !is_new {
            self.io.hand_over(Handover::HurryWatch);
        }
        is_new || soon
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
        OwnerActivity::unpack(self.worked_at.load(Relaxed), try_lock(&self.pump).is_err())
    }
}
