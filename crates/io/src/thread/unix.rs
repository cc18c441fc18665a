//! Threads on macOS and other Unix systems.

use std::ffi::CStr;
use std::io;

/// Longest name in bytes.
pub(super) const NAME_LENGTH: usize = 63;

pub(super) fn set_name(name: &CStr) {
    // SAFETY: the call reads a terminated string of at most 64 bytes.
    unsafe { libc::pthread_setname_np(name.as_ptr()) };
}

pub(super) fn set_affinity(_cpus: &[usize]) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOTSUP))
}

pub(super) fn set_timer_slack_ns(_nanos: u64) {}

pub(super) fn scheduling_parameter(priority: i32) -> libc::sched_param {
    // SAFETY: sched_param is a struct of integers and padding.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    parameter
}

pub(super) fn runnable() -> Option<usize> {
    None
}
