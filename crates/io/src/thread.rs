//! Starting a thread, and settings of the calling thread: its name, cores, priority and signals.
//! Background threads call these functions first.

use std::io;
use std::time::{Duration, Instant};

use crate::clock::ticks;
use crate::sys;

#[cfg_attr(linux_kernel, path = "thread/linux.rs")]
#[cfg_attr(windows, path = "thread/windows.rs")]
#[cfg_attr(all(unix, not(linux_kernel)), path = "thread/unix.rs")]
mod os;

#[cfg(windows)]
use os as common;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
use posix as common;
#[cfg(unix)]
mod start;
#[cfg(windows)]
use os::start;
pub use start::Started;

/// Stack size for threads that run the engine, in bytes.
pub const STACK: usize = 2 << 20;

/// Starts a thread with this name that runs `work`.
///
/// # Errors
/// A system error if the thread cannot be started. `work` does not run then.
pub fn start(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> io::Result<Started> {
    let name = name.to_owned();
    let work = move || {
        set_name(&name);
        work();
    };
    start::start(stack, Box::new(work))
}

/// Marks a thread of ours for as long as this value lives, from the thread's first act to its last.
/// Functions registered with [`tautline_mem::thread::on_exit`] run at the end.
#[must_use = "the thread counts as ours only while this value lives"]
#[derive(Debug)]
pub struct OwnThread(tautline_mem::thread::OwnThread);

impl OwnThread {
    /// Marks the calling thread. Blocks all signals, because the program's signals belong to the
    /// program's threads.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        block_all_signals();
        OwnThread(tautline_mem::thread::OwnThread::new())
    }
}

/// Yields the core once, and returns how many ticks passed until the thread ran again: very few on
/// an idle core, many if another thread needed it.
#[inline]
pub fn yield_now_timed() -> u64 {
    let before = ticks();
    std::thread::yield_now();
    ticks().saturating_sub(before)
}

/// Sleeps for `span`, regardless of signals. The standard library's function panics in a sandbox
/// that refuses clock_nanosleep.
pub fn sleep(span: Duration) {
    let start = Instant::now();
    while let Some(left) = span.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        if sys::poll(&mut [], Some(left), None).is_err() {
            std::thread::yield_now();
        }
    }
}

/// Names the calling thread, with as much of `name` as the system has space for.
pub fn set_name(name: &str) {
    let mut buffer = [0_u8; os::NAME_LENGTH + 1];
    let mut length = name.len().min(os::NAME_LENGTH);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    buffer[..length].copy_from_slice(&name.as_bytes()[..length]);
    if let Ok(name) = std::ffi::CStr::from_bytes_until_nul(&buffer) {
        os::set_name(name);
    }
}

/// Restricts the calling thread to these cores. Fails with EINVAL if all of them are missing, and
/// with ENOTSUP if the system does not support it.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    os::set_affinity(cpus)
}

/// Restricts the calling thread to one core.
pub fn pin(cpu: usize) -> io::Result<()> {
    set_affinity(&[cpu])
}

/// Sets scheduling policy and priority of the calling thread. A negative value leaves the current
/// setting. A priority outside the policy's range becomes the nearest one within it. Fails with
/// ENOTSUP if the system does not support it.
pub fn set_scheduling(policy: i32, priority: i32) -> io::Result<()> {
    common::set_scheduling(policy, priority)
}

/// Sets how late the kernel may end the calling thread's timed waits in order to bundle wake-ups.
/// Has no effect on systems without this setting.
pub fn set_timer_slack_ns(nanos: u64) {
    os::set_timer_slack_ns(nanos);
}

/// Blocks the process's signals in the calling thread. Background threads call this first, so that
/// the program's handlers run only on its own threads.
pub fn block_all_signals() {
    common::block_all_signals();
}

/// Returns the process id, which differs after a fork.
pub fn process_id() -> u32 {
    std::process::id()
}

/// Returns the number of cores that this process may use, at least 1.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of runnable threads in the whole system, including this one. `None` if the
/// system does not report it. Takes some microseconds.
pub fn runnable() -> Option<usize> {
    os::runnable()
}

#[cfg(test)]
mod tests;
