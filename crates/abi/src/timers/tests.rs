//! Calls the functions as C does: handles, errno, and callbacks that change their own timers.

use super::*;
use std::sync::atomic::{AtomicI32, Ordering};

/// Data that callbacks reach by its address.
struct Shared {
    timers: *mut c_void,
    calls: AtomicI32,
    /// Id of another timer, or zero.
    other: AtomicI32,
}

impl Shared {
    fn new() -> Box<Shared> {
        Box::new(Shared { timers: zmq_timers_new(), calls: AtomicI32::new(0), other: AtomicI32::new(0) })
    }

    fn add(&self, interval: usize, function: TimerFn) -> c_int {
        // SAFETY: the timers and `self` live until they are destroyed at the end of the test.
        unsafe { zmq_timers_add(self.timers, interval, Some(function), (&raw const *self).cast_mut().cast()) }
    }

    /// Runs the timers once and returns the number of calls.
    fn run(&self) -> i32 {
        let before = self.calls.load(Ordering::Relaxed);
        // SAFETY: the timers exist.
        assert_eq!(unsafe { zmq_timers_execute(self.timers) }, 0);
        self.calls.load(Ordering::Relaxed) - before
    }

    fn timeout(&self) -> c_long {
        // SAFETY: the timers exist.
        unsafe { zmq_timers_timeout(self.timers) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.timers.is_null() {
            // SAFETY: the timers live and are not used after this.
            assert_eq!(unsafe { zmq_timers_destroy(&mut self.timers) }, 0);
        }
    }
}

/// # Safety
/// `argument` is the one passed by [`Shared::add`].
unsafe fn called<'a>(argument: *mut c_void) -> &'a Shared {
    // SAFETY: the test keeps the value alive.
    let shared = unsafe { &*argument.cast::<Shared>() };
    shared.calls.fetch_add(1, Ordering::Relaxed);
    shared
}

unsafe extern "C" fn count(_: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`.
    unsafe { called(argument) };
}

unsafe extern "C" fn cancel_itself(id: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`; the timers exist.
    unsafe { assert_eq!(zmq_timers_cancel(called(argument).timers, id), 0) };
}

unsafe extern "C" fn cancel_other(_: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`; the timers exist.
    unsafe {
        let shared = called(argument);
        assert_eq!(zmq_timers_cancel(shared.timers, shared.other.load(Ordering::Relaxed)), 0);
    }
}

unsafe extern "C" fn add_another(_: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`.
    let shared = unsafe { called(argument) };
    shared.other.store(shared.add(0, count), Ordering::Relaxed);
}

unsafe extern "C" fn slow_down(id: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`; the timers exist.
    unsafe { assert_eq!(zmq_timers_set_interval(called(argument).timers, id, 60_000), 0) };
}

unsafe extern "C" fn run_again(_: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`; the timers exist.
    unsafe {
        let shared = called(argument);
        // Both timers are due again at once, so only the first call may start another run.
        if shared.calls.load(Ordering::Relaxed) == 1 {
            assert_eq!(zmq_timers_execute(shared.timers), 0);
        }
    }
}

unsafe extern "C" fn destroy_all(_: c_int, argument: *mut c_void) {
    // SAFETY: registered by `Shared::add`; the timers exist, and the test does not use them again.
    unsafe {
        let mut timers = called(argument).timers;
        assert_eq!(zmq_timers_destroy(&mut timers), 0);
        assert!(timers.is_null());
    }
}

#[test]
fn callbacks_run_when_due_and_not_before() {
    let shared = Shared::new();
    let id = shared.add(60_000, count);
    assert!(id > 0);
    assert_eq!(shared.run(), 0);
    assert!(shared.timeout() > 0);
    // SAFETY: the timers exist.
    unsafe { assert_eq!(zmq_timers_set_interval(shared.timers, id, 0), 0) };
    assert_eq!(shared.timeout(), 0);
    assert_eq!(shared.run(), 1);
    // SAFETY: the timers exist.
    unsafe { assert_eq!(zmq_timers_reset(shared.timers, id), 0) };
    assert_eq!(shared.run(), 1);
}

#[test]
fn a_callback_may_cancel_itself() {
    let shared = Shared::new();
    shared.add(0, cancel_itself);
    assert_eq!(shared.run(), 1);
    assert_eq!(shared.run(), 0);
    assert_eq!(shared.timeout(), -1);
}

#[test]
fn a_callback_may_cancel_another_that_is_due() {
    let shared = Shared::new();
    shared.add(0, cancel_other);
    shared.other.store(shared.add(0, count), Ordering::Relaxed);
    assert_eq!(shared.run(), 1);
}

#[test]
fn timers_added_by_a_callback_wait_for_the_next_run() {
    let shared = Shared::new();
    shared.add(0, add_another);
    assert_eq!(shared.run(), 1);
    assert!(shared.other.load(Ordering::Relaxed) > 0);
    assert_eq!(shared.run(), 2);
}

#[test]
fn a_callback_may_change_its_own_interval() {
    let shared = Shared::new();
    shared.add(0, slow_down);
    assert_eq!(shared.run(), 1);
    assert_eq!(shared.run(), 0);
    assert!(shared.timeout() > 0);
}

#[test]
fn a_callback_may_run_the_timers() {
    let shared = Shared::new();
    shared.add(0, run_again);
    shared.add(0, run_again);
    // The first timer, then the two of the inner run. The second timer has already run in the inner
    // run.
    assert_eq!(shared.run(), 3);
}

#[test]
fn a_callback_may_destroy_the_timers() {
    let mut shared = Shared::new();
    shared.add(0, destroy_all);
    shared.add(0, count);
    assert_eq!(shared.run(), 1);
    shared.timers = null_mut();
}

#[test]
fn no_timers_are_efault() {
    let mut none = null_mut();
    let mut other_object = [0_u64; 4];
    for handle in [none, other_object.as_mut_ptr().cast()] {
        // SAFETY: null, or memory that holds no timers.
        unsafe {
            let mut place = handle;
            let failures = [
                i64::from(zmq_timers_destroy(&mut place)),
                i64::from(zmq_timers_add(handle, 1, Some(count), null_mut())),
                i64::from(zmq_timers_cancel(handle, 1)),
                i64::from(zmq_timers_set_interval(handle, 1, 1)),
                i64::from(zmq_timers_reset(handle, 1)),
                zmq_timers_timeout(handle) as i64,
                i64::from(zmq_timers_execute(handle)),
            ];
            assert_eq!(failures, [-1; 7]);
            assert_eq!(errno::last(), errno::EFAULT);
        }
    }
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(zmq_timers_destroy(null_mut()), -1);
        assert_eq!(zmq_timers_destroy(&mut none), -1);
    }
}

#[test]
fn no_such_timer_is_einval_and_no_function_efault() {
    let shared = Shared::new();
    // SAFETY: the timers exist.
    unsafe {
        for call in [zmq_timers_cancel, zmq_timers_reset] {
            errno::set(0);
            assert_eq!(call(shared.timers, 1), -1);
            assert_eq!(errno::last(), errno::EINVAL);
        }
        errno::set(0);
        assert_eq!(zmq_timers_set_interval(shared.timers, 1, 1), -1);
        assert_eq!(errno::last(), errno::EINVAL);
        assert_eq!(zmq_timers_add(shared.timers, 1, None, null_mut()), -1);
        assert_eq!(errno::last(), errno::EFAULT);
    }
}
