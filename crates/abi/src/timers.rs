//! `zmq_timers_*`: callbacks that repeat at an interval, run by `zmq_timers_execute` on the
//! caller's thread.
//!
//! C programs call these functions; the rest of the library does not use these timers. The lock is
//! never held during a callback, so a callback may add, change and cancel timers, run
//! `zmq_timers_execute` again, or destroy the whole set. One run calls each timer at most once, in
//! order of expiry. Timers that a callback adds or resets wait for the next run.
//!
//! The caller passes a handle of `zmq_timers_new`, or null; it must exist until the call returns.
//! `zmq_timers_destroy` takes the address of the variable with this handle, or null. A callback
//! accepts the argument that was registered with it.

use std::ffi::{c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tautline_io::{errno, time};

use crate::guard::{guard, guard_new};
use crate::handle::{self, Handle, Tag};

mod schedule;
use schedule::{Schedule, TimerFn};

/// The object behind the handle.
#[repr(C)]
struct Timers {
    tag: Tag,
    schedule: Mutex<Schedule>,
}

// SAFETY: repr(C), the tag first, and no other object has this tag.
unsafe impl Handle for Timers {
    const TAG: u32 = 0x71AE_2501;
}

impl Timers {
    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn execute(&self) {
        let now = time::monotonic_nanos();
        let run = self.schedule().begin_run();
        loop {
            // The lock is released before the callback runs.
            let due = self.schedule().next_due(now, run);
            let Some((id, callback)) = due else { return };
            // SAFETY: the caller of zmq_timers_add passed a function that takes this argument.
            unsafe { (callback.function)(id, callback.argument) }
        }
    }
}

/// Calls `call` with the timers behind the handle. -1 with EFAULT if the handle is invalid, with
/// EINVAL if `call` returns `None`.
///
/// # Safety
/// `timers` is null or points to at least four readable bytes, and is not being destroyed at the
/// same time.
unsafe fn with_timers<T: From<i8>>(timers: *mut c_void, call: impl FnOnce(&Timers) -> Option<T>) -> T {
    guard(T::from(-1), || {
        // SAFETY: guaranteed by the caller.
        let Some(timers) = (unsafe { handle::acquire::<Timers>(timers) }) else {
            errno::set(errno::EFAULT);
            return T::from(-1);
        };
        call(&timers).unwrap_or_else(|| {
            errno::set(errno::EINVAL);
            T::from(-1)
        })
    })
}

/// Makes a set of timers, to be released with [`zmq_timers_destroy`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_timers_new() -> *mut c_void {
    guard_new(null_mut(), || {
        handle::into_raw(Timers { tag: Tag::of::<Timers>(), schedule: Mutex::new(Schedule::default()) })
    })
}

/// Frees the timers and sets the caller's pointer to null. -1 with EFAULT if it is not a set of
/// timers.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_destroy(timers: *mut *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null, or a valid place that holds null or the handle of an
        // object.
        let released = unsafe { timers.as_mut().and_then(|place| handle::release::<Timers>(*place)) };
        let Some(released) = released else {
            errno::set(errno::EFAULT);
            return -1;
        };
        // If this call comes from a callback, the run in progress then finds no further timers.
        released.schedule().clear();
        // SAFETY: not null, since a handle was found there.
        unsafe { *timers = null_mut() };
        0
    })
}

/// Registers `function(id, argument)` to be called every `interval` milliseconds. Returns the
/// timer's id, above zero. -1 with EFAULT without timers or function.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_add(
    timers: *mut c_void,
    interval: usize,
    function: Option<TimerFn>,
    argument: *mut c_void,
) -> c_int {
    let Some(function) = function else {
        errno::set(errno::EFAULT);
        return -1;
    };
    let now = time::monotonic_nanos();
    // SAFETY: the caller passes null or the handle of an object.
    guard_new(-1, || unsafe {
        with_timers(timers, |timers| Some(timers.schedule().add(now, interval, function, argument)))
    })
}

/// Cancels a timer. -1 with EINVAL if the timer does not exist (any more).
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_cancel(timers: *mut c_void, id: c_int) -> c_int {
    // SAFETY: the caller passes null or the handle of an object.
    unsafe { with_timers(timers, |timers| timers.schedule().cancel(id).then_some(0)) }
}

/// Sets another interval for a timer, which starts now. -1 with EINVAL if the timer does not exist.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_set_interval(timers: *mut c_void, id: c_int, interval: usize) -> c_int {
    let now = time::monotonic_nanos();
    // SAFETY: the caller passes null or the handle of an object.
    unsafe { with_timers(timers, |timers| timers.schedule().restart(now, id, Some(interval)).then_some(0)) }
}

/// Restarts a timer's interval. -1 with EINVAL if the timer does not exist. A timer cancelled since
/// the last `zmq_timers_timeout` or `zmq_timers_execute` stays cancelled, with the result 0.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_reset(timers: *mut c_void, id: c_int) -> c_int {
    let now = time::monotonic_nanos();
    // SAFETY: the caller passes null or the handle of an object.
    unsafe { with_timers(timers, |timers| timers.schedule().restart(now, id, None).then_some(0)) }
}

/// Returns the milliseconds until the next timer expires, rounded up; 0 if one has expired, -1
/// without timers.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_timeout(timers: *mut c_void) -> c_long {
    let now = time::monotonic_nanos();
    // SAFETY: the caller passes null or the handle of an object.
    unsafe {
        with_timers(timers, |timers| {
            let left_ms = timers.schedule().remaining_ms(now);
            Some(left_ms.map_or(-1, |left| c_long::try_from(left).unwrap_or(c_long::MAX)))
        })
    }
}

/// Calls the functions of all timers that have expired.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_timers_execute(timers: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or the handle of an object.
    unsafe {
        with_timers(timers, |timers| {
            timers.execute();
            Some(0)
        })
    }
}

#[cfg(test)]
mod tests;
