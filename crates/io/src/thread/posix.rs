//! Code shared by the threads of all Unix systems: policy and priority, and signals.

use std::io;

use super::os::scheduling_parameter;
use crate::sys::check;

pub(super) fn set_scheduling(policy: i32, priority: i32) -> io::Result<()> {
    // SAFETY: no arguments and no preconditions.
    let this = unsafe { libc::pthread_self() };
    let (mut current, mut parameter) = (0, scheduling_parameter(0));
    // SAFETY: the thread is the calling one, so it exists; both results go into exclusive
    // variables.
    check_number(unsafe { libc::pthread_getschedparam(this, &mut current, &mut parameter) })?;
    let policy = if policy < 0 { current } else { policy };
    let wanted = if priority < 0 { parameter.sched_priority } else { priority };
    // SAFETY: integers only; a policy that does not exist is an error.
    let (low, high) = unsafe {
        (check(libc::sched_get_priority_min(policy))?, check(libc::sched_get_priority_max(policy))?)
    };
    let parameter = scheduling_parameter(wanted.clamp(low, high.max(low)));
    // SAFETY: the thread is the calling one; the parameter outlives the call.
    check_number(unsafe { libc::pthread_setschedparam(this, policy, &parameter) })
}

pub(super) fn block_all_signals() {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set before it is read; a null old set is not written.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Returns the outcome of a call that returns its error number instead of setting `errno`.
pub(super) fn check_number(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}
