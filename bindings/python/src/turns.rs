//! `Turns`, the fairness of asynchronous sockets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::enter::Direction;

/// Operations that succeed at once before an asynchronous caller gives way.
const TURN: i32 = 64;
/// Time after which it gives way, in nanoseconds.
pub(crate) const TURN_NANOS: u64 = 500_000;
/// Time per operation below which a caller is quick, in nanoseconds.
const QUICK_NANOS: u64 = 10_000;
/// Operations between two looks at the clock, for a quick caller.
const QUICK_STEP: i32 = 8;
/// Value of a counter while a caller waits, which no other call overtakes.
const BLOCKED: i32 = -1;

/// The number of operations in each direction that may still succeed before the caller has to give
/// way to the other tasks of its event loop.
// Relaxed: own: hints of one event loop, whose methods run one at a time.
pub(crate) struct Turns {
    left: [AtomicI32; 2],
    /// Values of `left` at which the clock is read next.
    check: [AtomicI32; 2],
    /// Start of the turn, as of [`nanos`].
    since: AtomicU64,
}

pub(crate) fn direction(index: usize) -> PyResult<Direction> {
    match index {
        0 => Ok(Direction::Receive),
        1 => Ok(Direction::Send),
        _ => Err(PyValueError::new_err("the direction is 0 (receive) or 1 (send)")),
    }
}

/// Returns the nanoseconds since the first call.
pub(crate) fn nanos() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Turns {
    pub(crate) fn new() -> Turns {
        let full = || [AtomicI32::new(TURN), AtomicI32::new(TURN)];
        Turns { left: full(), check: full(), since: AtomicU64::new(nanos()) }
    }

    /// Counts an operation. Returns false if the turn is over, or if another caller waits.
    #[inline(always)]
    pub(crate) fn take(&self, direction: Direction) -> bool {
        let left = &self.left[direction as usize];
        let number = left.load(Ordering::Relaxed);
        if number <= 0 {
            return false;
        }
        if number <= self.check[direction as usize].load(Ordering::Relaxed) && self.is_over(direction, number)
        {
            left.store(0, Ordering::Relaxed);
            return false;
        }
        left.store(number - 1, Ordering::Relaxed);
        true
    }

    /// True if the turn has lasted too long. Otherwise chooses when to read the clock again: the
    /// callers of quick operations, which can do many in a turn, need not read it each time.
    fn is_over(&self, direction: Direction, number: i32) -> bool {
        let elapsed = nanos().wrapping_sub(self.since.load(Ordering::Relaxed));
        let operations = u64::from((TURN - number).unsigned_abs()) + 1;
        let step = if elapsed < operations * QUICK_NANOS { QUICK_STEP } else { 1 };
        self.check[direction as usize].store(number - step, Ordering::Relaxed);
        elapsed > TURN_NANOS
    }

    /// True if the turn is over.
    pub(crate) fn is_used_up(&self, direction: Direction) -> bool {
        self.left[direction as usize].load(Ordering::Relaxed) == 0
    }

    /// Blocks a direction for others. Returns true if the turn was over.
    pub(crate) fn block(&self, direction: Direction) -> bool {
        self.left[direction as usize].swap(BLOCKED, Ordering::Relaxed) == 0
    }

    /// Starts a new turn after a wait.
    pub(crate) fn renew(&self, direction: Direction) {
        for check in &self.check {
            check.store(TURN, Ordering::Relaxed);
        }
        self.left[direction as usize].store(TURN, Ordering::Relaxed);
        for left in &self.left {
            if left.load(Ordering::Relaxed) != BLOCKED {
                left.store(TURN, Ordering::Relaxed);
            }
        }
        self.since.store(nanos(), Ordering::Relaxed);
    }
}
