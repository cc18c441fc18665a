//! Connections whose bytes a thread has left queued, and which it writes before it next waits, for
//! whatever socket. `timing::wait_habit` decides what this is worth.
//!
//! The residual watch still covers these bytes, because the thread may compute, or wait elsewhere.

use super::{Connection, Flushed};
use crate::idle::thread_account;
use std::cell::{Cell, RefCell};
use std::sync::Weak;
use tautline_io::{clock, fork};
use tautline_queue::sync::Arc;
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
pub(super) fn remember(connection: &Arc<Connection>, now: u64, joins: bool) -> bool {
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
