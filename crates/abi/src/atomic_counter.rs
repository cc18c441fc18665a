//! `zmq_atomic_counter_*`: a counter that any thread may change. The handle is the counter itself.
//! With a null handle the functions do nothing.
//!
//! The caller passes a counter of `zmq_atomic_counter_new` that still exists, or null.
//! `zmq_atomic_counter_destroy` takes the address of the variable with this pointer, or null.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::guard::guard_new;

/// Makes a counter with the value zero, to be released with [`zmq_atomic_counter_destroy`]. Null
/// with ENOMEM while memory is short.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub extern "C" fn zmq_atomic_counter_new() -> *mut c_void {
    guard_new(null_mut(), || Box::into_raw(Box::new(AtomicI32::new(0))).cast())
}

/// Sets the counter.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_atomic_counter_set(counter: *mut c_void, value: c_int) {
    // SAFETY: the caller passes null or a live counter.
    if let Some(counter) = unsafe { at(counter) } {
        counter.store(value, Ordering::SeqCst);
    }
}

/// Adds one and returns the previous value.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_atomic_counter_inc(counter: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a live counter.
    unsafe { at(counter) }.map_or(0, |counter| counter.fetch_add(1, Ordering::SeqCst))
}

/// Subtracts one. Returns 0 if the counter is zero now, else 1.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_atomic_counter_dec(counter: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a live counter.
    unsafe { at(counter) }.map_or(0, |counter| c_int::from(counter.fetch_sub(1, Ordering::SeqCst) != 1))
}

/// Returns the counter's current value.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_atomic_counter_value(counter: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a live counter.
    unsafe { at(counter) }.map_or(0, |counter| counter.load(Ordering::SeqCst))
}

/// Frees the counter and sets the caller's pointer to null.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_atomic_counter_destroy(counter: *mut *mut c_void) {
    if counter.is_null() {
        return;
    }
    // SAFETY: the caller passes a valid place, which holds null or a live counter of
    // zmq_atomic_counter_new.
    unsafe {
        let old = counter.replace(std::ptr::null_mut());
        if !old.is_null() {
            drop(Box::from_raw(old.cast::<AtomicI32>()));
        }
    }
}

/// # Safety
/// `counter` is null or a live counter.
unsafe fn at<'a>(counter: *mut c_void) -> Option<&'a AtomicI32> {
    // SAFETY: guaranteed by the caller. Counters are only ever accessed atomically.
    unsafe { counter.cast::<AtomicI32>().as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn counts_as_the_manual_says() {
        let mut counter = zmq_atomic_counter_new();
        // SAFETY: the counter lives until destroyed.
        unsafe {
            assert_eq!(zmq_atomic_counter_value(counter), 0);
            assert_eq!(zmq_atomic_counter_inc(counter), 0);
            assert_eq!(zmq_atomic_counter_inc(counter), 1);
            assert_eq!(zmq_atomic_counter_value(counter), 2);
            assert_eq!(zmq_atomic_counter_dec(counter), 1);
            assert_eq!(zmq_atomic_counter_dec(counter), 0);
            assert_eq!(zmq_atomic_counter_dec(counter), 1);
            assert_eq!(zmq_atomic_counter_value(counter), -1);
            zmq_atomic_counter_set(counter, i32::MAX);
            assert_eq!(zmq_atomic_counter_inc(counter), i32::MAX);
            assert_eq!(zmq_atomic_counter_value(counter), i32::MIN);
            zmq_atomic_counter_destroy(&mut counter);
        }
        assert!(counter.is_null());
    }

    #[test]
    fn null_is_harmless() {
        let mut none = null_mut();
        // SAFETY: null is allowed.
        unsafe {
            zmq_atomic_counter_set(none, 1);
            assert_eq!(zmq_atomic_counter_inc(none), 0);
            assert_eq!(zmq_atomic_counter_dec(none), 0);
            assert_eq!(zmq_atomic_counter_value(none), 0);
            zmq_atomic_counter_destroy(&mut none);
            zmq_atomic_counter_destroy(null_mut());
        }
    }

    #[test]
    fn threads_count_together() {
        let counter = zmq_atomic_counter_new() as usize;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // SAFETY: the counter outlives the scope.
                scope.spawn(move || unsafe {
                    for _ in 0..1000 {
                        zmq_atomic_counter_inc(counter as *mut c_void);
                    }
                });
            }
        });
        let mut counter = counter as *mut c_void;
        // SAFETY: all threads that used the counter have ended.
        unsafe {
            assert_eq!(zmq_atomic_counter_value(counter), 4000);
            zmq_atomic_counter_destroy(&mut counter);
        }
    }
}
