//! Schedule of the timers: plain data, without a clock. The caller passes the time to every call,
//! in nanoseconds.
//!
//! [`super`] uses this file under its lock. Invariant: each timer stands in `queue` exactly once,
//! under its own key.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{c_int, c_void};

/// `zmq_timer_fn` of `zmq.h`.
pub(super) type TimerFn = unsafe extern "C" fn(c_int, *mut c_void);

/// Function to call when a timer expires.
#[derive(Clone, Copy)]
pub(super) struct Callback {
    pub(super) function: TimerFn,
    pub(super) argument: *mut c_void,
}

// SAFETY: the argument is only passed back to the function, on the thread that calls
// zmq_timers_execute. The caller of zmq_timers_add guarantees that this thread may use it.
unsafe impl Send for Callback {}

struct Timer {
    interval_ns: u64,
    key: Key,
    callback: Callback,
}

/// Order of expiry. Timers with the same time are in the order in which they were started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    expires_ns: u64,
    started: u64,
}

/// All timers of one handle.
#[derive(Default)]
pub(super) struct Schedule {
    timers: HashMap<c_int, Timer>,
    queue: BTreeMap<Key, c_int>,
    /// Timers cancelled since the last call that looked at the queue. As in libzmq, a reset of such
    /// a timer succeeds without effect.
    cancelled: HashSet<c_int>,
    /// Number of starts so far, first and repeated ones.
    starts: u64,
    last_id: c_int,
}

/// The timers that existed when a run began. Timers started later belong to the next run.
#[derive(Clone, Copy)]
pub(super) struct Run(u64);

impl Schedule {
    /// Registers a timer and returns its id.
    pub(super) fn add(
        &mut self,
        now: u64,
        interval_ms: usize,
        function: TimerFn,
        argument: *mut c_void,
    ) -> c_int {
        let id = self.free_id();
        let interval_ns = nanos(interval_ms);
        let key = self.enqueue(now, interval_ns, id);
        self.timers.insert(id, Timer { interval_ns, key, callback: Callback { function, argument } });
        id
    }

    /// Cancels a timer. Returns false if it does not exist.
    pub(super) fn cancel(&mut self, id: c_int) -> bool {
        let Some(timer) = self.timers.remove(&id) else { return false };
        self.queue.remove(&timer.key);
        self.cancelled.insert(id);
        true
    }

    /// Restarts the interval of a timer, with a new length if given. Returns false if the timer
    /// does not exist. A timer that was just cancelled stays cancelled, but the result is true.
    pub(super) fn restart(&mut self, now: u64, id: c_int, interval_ms: Option<usize>) -> bool {
        let Some(mut timer) = self.timers.remove(&id) else { return self.cancelled.contains(&id) };
        self.queue.remove(&timer.key);
        timer.interval_ns = interval_ms.map_or(timer.interval_ns, nanos);
        timer.key = self.enqueue(now, timer.interval_ns, id);
        self.timers.insert(id, timer);
        true
    }

    /// Returns the milliseconds until the next expiry, rounded up. A caller that waits that long
    /// finds the timer expired.
    pub(super) fn remaining_ms(&mut self, now: u64) -> Option<u64> {
        self.cancelled.clear();
        let (key, _) = self.queue.first_key_value()?;
        Some(key.expires_ns.saturating_sub(now).div_ceil(1_000_000))
    }

    /// Starts a run. The result is for [`Schedule::next_due`].
    pub(super) fn begin_run(&mut self) -> Run {
        self.cancelled.clear();
        Run(self.starts)
    }

    /// Returns the next timer that expired by `now` and was started before `run` began, and
    /// restarts its interval.
    pub(super) fn next_due(&mut self, now: u64, run: Run) -> Option<(c_int, Callback)> {
        let (key, id) = self.queue.first_key_value().map(|(key, id)| (*key, *id))?;
        // Timers started during this run expire at `now` or later. They therefore stand behind all
        // timers of this run.
        if key.expires_ns > now || key.started >= run.0 {
            return None;
        }
        let callback = self.timers.get(&id)?.callback;
        self.restart(now, id, None);
        Some((id, callback))
    }

    /// Cancels all timers.
    pub(super) fn clear(&mut self) {
        self.timers.clear();
        self.queue.clear();
        self.cancelled.clear();
    }

    fn enqueue(&mut self, now: u64, interval_ns: u64, id: c_int) -> Key {
        let key = Key { expires_ns: now.saturating_add(interval_ns), started: self.starts };
        self.starts += 1;
        self.queue.insert(key, id);
        key
    }

    /// Returns the next id above zero that no timer has.
    fn free_id(&mut self) -> c_int {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.timers.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

fn nanos(ms: usize) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    unsafe extern "C" fn nothing(_: c_int, _: *mut c_void) {}

    const MS: u64 = 1_000_000;

    fn add(schedule: &mut Schedule, now: u64, interval_ms: usize) -> c_int {
        schedule.add(now, interval_ms, nothing, null_mut())
    }

    fn run(schedule: &mut Schedule, now: u64) -> Vec<c_int> {
        let run = schedule.begin_run();
        std::iter::from_fn(|| schedule.next_due(now, run)).map(|(id, _)| id).collect()
    }

    #[test]
    fn timers_expire_in_order_and_repeat() {
        let mut schedule = Schedule::default();
        let (late, early, also_early) =
            (add(&mut schedule, 0, 10), add(&mut schedule, 0, 5), add(&mut schedule, 0, 5));
        assert_eq!((late, early, also_early), (1, 2, 3));
        assert_eq!(run(&mut schedule, 5 * MS - 1), []);
        assert_eq!(run(&mut schedule, 5 * MS), [early, also_early]);
        // An interval that was missed several times leads to only one call.
        assert_eq!(run(&mut schedule, 100 * MS), [late, early, also_early]);
        assert_eq!(run(&mut schedule, 100 * MS), []);
        assert_eq!(schedule.remaining_ms(100 * MS), Some(5));
    }

    #[test]
    fn remaining_time_is_rounded_up() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.remaining_ms(7), None);
        let id = add(&mut schedule, 0, 2);
        assert_eq!(schedule.remaining_ms(0), Some(2));
        assert_eq!(schedule.remaining_ms(1), Some(2));
        assert_eq!(schedule.remaining_ms(2 * MS - 1), Some(1));
        assert_eq!(schedule.remaining_ms(2 * MS), Some(0));
        assert_eq!(schedule.remaining_ms(9 * MS), Some(0));
        assert!(schedule.cancel(id));
        assert_eq!(schedule.remaining_ms(0), None);
    }

    #[test]
    fn restart_starts_the_interval_anew() {
        let mut schedule = Schedule::default();
        let id = add(&mut schedule, 0, 10);
        assert!(schedule.restart(8 * MS, id, None));
        assert_eq!(schedule.remaining_ms(8 * MS), Some(10));
        assert!(schedule.restart(9 * MS, id, Some(3)));
        assert_eq!(run(&mut schedule, 12 * MS), [id]);
        assert_eq!(schedule.remaining_ms(12 * MS), Some(3));
        assert!(!schedule.restart(0, id + 1, None));
    }

    #[test]
    fn cancelled_timers_are_gone_for_good() {
        let mut schedule = Schedule::default();
        let id = add(&mut schedule, 0, 1);
        assert!(schedule.cancel(id));
        assert!(!schedule.cancel(id));
        assert_eq!(run(&mut schedule, 10 * MS), []);
        assert_ne!(add(&mut schedule, 0, 1), id);
    }

    #[test]
    fn reset_of_a_timer_just_cancelled_has_no_effect() {
        for executes in [true, false] {
            let mut schedule = Schedule::default();
            let id = add(&mut schedule, 0, 1);
            assert!(schedule.cancel(id));
            assert!(schedule.restart(0, id, None) && schedule.restart(0, id, Some(7)));
            assert!(!schedule.cancel(id));
            if executes {
                assert_eq!(run(&mut schedule, 10 * MS), []);
            } else {
                assert_eq!(schedule.remaining_ms(0), None);
            }
            assert!(!schedule.restart(0, id, None));
            assert_eq!((run(&mut schedule, 10 * MS), schedule.remaining_ms(0)), (vec![], None));
        }
    }

    #[test]
    fn no_interval_runs_once_a_run() {
        let mut schedule = Schedule::default();
        let id = add(&mut schedule, 0, 0);
        assert_eq!(run(&mut schedule, 0), [id]);
        assert_eq!(run(&mut schedule, 0), [id]);
    }

    #[test]
    fn endless_intervals_do_not_overflow() {
        let mut schedule = Schedule::default();
        let id = add(&mut schedule, u64::MAX - 5, usize::MAX);
        assert!(schedule.restart(u64::MAX - 1, id, Some(usize::MAX)));
        assert!(schedule.remaining_ms(0).is_some_and(|left| left > 1 << 43));
    }

    #[test]
    fn ids_wrap_past_those_in_use() {
        let mut schedule = Schedule::default();
        let first = add(&mut schedule, 0, 1);
        schedule.last_id = c_int::MAX;
        assert_eq!(add(&mut schedule, 0, 1), first + 1);
    }
}
