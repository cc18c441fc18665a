//! Threads on Linux.

use std::ffi::CStr;
use std::io;

use crate::sys::check;

/// Length of the longest name in bytes.
pub(super) const NAME_LENGTH: usize = 15;

pub(super) fn set_name(name: &CStr) {
    // SAFETY: the kernel reads a terminated string of at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

pub(super) fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: cpu_set_t is an array of integers, for which all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the index is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads one set of the given size; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) })?;
    Ok(())
}

pub(super) fn set_timer_slack_ns(nanos: u64) {
    let nanos = libc::c_ulong::try_from(nanos).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: an integer argument only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
}

pub(super) fn scheduling_parameter(priority: i32) -> libc::sched_param {
    // SAFETY: sched_param is a struct of integers (more than one with some C libraries).
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    parameter
}

/// From `/proc/loadavg`: three averages, then `runnable/existing`.
pub(super) fn runnable() -> Option<usize> {
    let mut text = [0; 64];
    let mut file = std::fs::File::open("/proc/loadavg").ok()?;
    let len = std::io::Read::read(&mut file, &mut text).ok()?;
    let counts = std::str::from_utf8(text.get(..len)?).ok()?.split(' ').nth(3)?;
    counts.split('/').next()?.parse().ok()
}
