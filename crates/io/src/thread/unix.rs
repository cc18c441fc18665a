//! Threads on macOS and other Unix systems.

use std::ffi::CStr;
use std::io;

use crate::libc;

/// Length of the longest name in bytes: 63 on macOS, 31 on NetBSD.
pub(super) const NAME_LENGTH: usize = if cfg!(target_os = "netbsd") { 31 } else { 63 };

#[cfg(apple)]
pub(super) fn set_name(name: &CStr) {
    // SAFETY: the call reads a terminated string of at most 64 bytes.
    unsafe { libc::pthread_setname_np(name.as_ptr()) };
}

#[cfg(any(target_os = "freebsd", target_os = "openbsd", target_os = "dragonfly"))]
pub(super) fn set_name(name: &CStr) {
    // SAFETY: the thread is the calling one; the call reads a terminated string.
    unsafe { libc::pthread_set_name_np(libc::pthread_self(), name.as_ptr()) };
}

#[cfg(target_os = "netbsd")]
pub(super) fn set_name(name: &CStr) {
    // SAFETY: the thread is the calling one. The call reads two terminated strings; the first is
    // the format of the second.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"%s".as_ptr(), name.as_ptr().cast()) };
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
