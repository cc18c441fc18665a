//! `zmq_stopwatch_*` and `zmq_sleep`: time for portable test programs. A stopwatch's handle is a
//! boxed `Instant`.
//!
//! The caller passes a stopwatch of `zmq_stopwatch_start` that was not stopped yet, or null.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crate::guard::guard_new;

/// Starts a stopwatch, to be released with [`zmq_stopwatch_stop`]. Null with ENOMEM while
/// memory is short.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_stopwatch_start() -> *mut c_void {
    guard_new(null_mut(), || Box::into_raw(Box::new(Instant::now())).cast())
}

/// Returns the microseconds since the start. The stopwatch keeps running.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_stopwatch_intermediate(watch: *mut c_void) -> c_ulong {
    // SAFETY: the caller passes null or a running stopwatch.
    unsafe { watch.cast::<Instant>().as_ref() }.map_or(0, elapsed_us)
}

/// Returns the microseconds since the start and frees the stopwatch.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_stopwatch_stop(watch: *mut c_void) -> c_ulong {
    if watch.is_null() {
        return 0;
    }
    // SAFETY: not null, so a running stopwatch of zmq_stopwatch_start that the caller passes up.
    let start = unsafe { Box::from_raw(watch.cast::<Instant>()) };
    elapsed_us(&start)
}

fn elapsed_us(start: &Instant) -> c_ulong {
    c_ulong::try_from(start.elapsed().as_micros()).unwrap_or(c_ulong::MAX)
}

/// Sleeps for whole seconds. Returns at once for zero or negative numbers.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_sleep(seconds: c_int) {
    if let Ok(seconds @ 1..) = u64::try_from(seconds) {
        tautline_io::thread::sleep(Duration::from_secs(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_on_until_stopped() {
        let watch = zmq_stopwatch_start();
        // SAFETY: the stopwatch runs until stopped.
        let (first, last) = unsafe {
            while zmq_stopwatch_intermediate(watch) == 0 {
                std::hint::spin_loop();
            }
            (zmq_stopwatch_intermediate(watch), zmq_stopwatch_stop(watch))
        };
        assert!(first > 0 && last >= first, "{first} {last}");
    }

    #[test]
    fn null_and_no_time_are_harmless() {
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(zmq_stopwatch_intermediate(std::ptr::null_mut()), 0);
            assert_eq!(zmq_stopwatch_stop(std::ptr::null_mut()), 0);
        }
        zmq_sleep(0);
        zmq_sleep(-5);
    }
}
