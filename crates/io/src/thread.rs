//! The calling thread towards the scheduler: its name, cores, priority and signals. Background
//! threads set themselves up with these as their first act.

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

/// A thread of our own, for as long as this lives: from its first act to its last. What it has
/// registered with [`tautline_mem::thread::at_end`] is called at the end.
#[must_use = "its end is the end of the thread"]
#[derive(Debug)]
pub struct OwnThread(tautline_mem::thread::OwnThread);

impl OwnThread {
    /// The calling thread is one. The program's signals are for the program's threads.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        block_all_signals();
        OwnThread(tautline_mem::thread::OwnThread::new())
    }
}

/// Gives up the core once, and returns how many ticks passed until it was back: next to none on an
/// idle core, much if another thread needed it.
#[inline]
pub fn yield_now_timed() -> u64 {
    let before = ticks();
    std::thread::yield_now();
    ticks().saturating_sub(before)
}

/// Sleeps for `span`, whatever signals come. The standard library's panics in a sandbox that
/// refuses clock_nanosleep.
pub fn sleep(span: Duration) {
    let start = Instant::now();
    while let Some(left) = span.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        if sys::poll(&mut [], Some(left), None).is_err() {
            std::thread::yield_now();
        }
    }
}

/// Names the calling thread, with as much of `name` as the system has room for.
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

/// Lets the calling thread run on these cores only. EINVAL if none of them exists, ENOTSUP where
/// the system has no such thing.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    os::set_affinity(cpus)
}

/// Lets the calling thread run on one core only.
pub fn pin(cpu: usize) -> io::Result<()> {
    set_affinity(&[cpu])
}

/// Sets scheduling policy and priority of the calling thread. A negative value leaves that one as
/// it is; a priority outside the policy's range becomes the nearest within. ENOTSUP where the
/// system has no such thing.
pub fn set_scheduling(policy: i32, priority: i32) -> io::Result<()> {
    common::set_scheduling(policy, priority)
}

/// How late the kernel may let the calling thread's timed waits end, to bundle wake-ups. Nothing
/// where the system has no such setting.
pub fn set_timer_slack_ns(nanos: u64) {
    os::set_timer_slack_ns(nanos);
}

/// Keeps signals of the process away from the calling thread. Background threads do so first, so
/// that the program's handlers only ever run on its own threads.
pub fn block_all_signals() {
    common::block_all_signals();
}

/// The process; another one after a fork.
pub fn process_id() -> u32 {
    std::process::id()
}

/// How many cores this process may run on, at least 1.
pub fn cpu_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many threads of the whole system want to run just now, this one among them. `None` where the
/// system does not tell. Takes some microseconds.
pub fn runnable() -> Option<usize> {
    os::runnable()
}

#[cfg(test)]
mod tests;
