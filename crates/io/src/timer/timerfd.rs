//! [`TimerFd`] as a Linux timerfd on the monotonic clock. If a sandbox forbids that, a sleeping
//! thread replaces it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::thread::ThreadTimer;
use crate::sys::{check, check_length, is_refused, retry, timespec};

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd(Kind);

#[derive(Debug)]
enum Kind {
    Kernel(OwnedFd),
    /// Used in a sandbox that forbids the calls.
    Thread(ThreadTimer),
}

impl TimerFd {
    /// Creates a timer that is not armed.
    pub fn new() -> io::Result<Self> {
        match TimerFd::new_timerfd() {
            Err(error) if is_refused(&error) => TimerFd::new_with_thread(),
            timer => timer,
        }
    }

    pub(super) fn new_with_thread() -> io::Result<Self> {
        Ok(TimerFd(Kind::Thread(ThreadTimer::start()?)))
    }

    fn new_timerfd() -> io::Result<Self> {
        // SAFETY: the call takes integers and returns a descriptor of our own.
        let fd = unsafe {
            OwnedFd::from_raw_fd(check(libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_CLOEXEC | libc::TFD_NONBLOCK,
            ))?)
        };
        // Check the result once, to learn now whether a sandbox refuses this call.
        set(&fd, Duration::ZERO)?;
        Ok(TimerFd(Kind::Kernel(fd)))
    }

    /// Makes the descriptor readable once, `after` from now. Replaces an earlier setting, and
    /// forgets an expiry that was not drained.
    pub fn arm(&self, after: Duration) {
        // The kernel takes zero for "disarm".
        let after = after.clamp(Duration::from_nanos(1), FAR);
        match &self.0 {
            // The call cannot fail with a valid descriptor and nanoseconds below one second.
            Kind::Kernel(fd) => drop(set(fd, after)),
            Kind::Thread(timer) => timer.set(Some(after)),
        }
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        match &self.0 {
            Kind::Kernel(fd) => drop(set(fd, Duration::ZERO)),
            Kind::Thread(timer) => timer.set(None),
        }
    }

    /// Makes the descriptor unreadable again. Returns true if the timer had expired.
    pub fn drain(&self) -> bool {
        let fd = match &self.0 {
            Kind::Kernel(fd) => fd,
            Kind::Thread(timer) => return timer.drain(),
        };
        let mut count = 0_u64;
        // SAFETY: the kernel writes 8 bytes into a u64.
        retry(|| unsafe {
            check_length(libc::read(fd.as_raw_fd(), (&raw mut count).cast(), size_of_val(&count)))
        })
        .is_ok()
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Kernel(fd) => fd.as_fd(),
            Kind::Thread(timer) => timer.as_fd(),
        }
    }
}

/// Arms the timer, or disarms it with zero.
fn set(fd: &OwnedFd, after: Duration) -> io::Result<()> {
    let setting = libc::itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(after) };
    // SAFETY: the kernel reads one itimerspec that outlives the call; a null old value is not
    // written.
    check(unsafe { libc::timerfd_settime(fd.as_raw_fd(), 0, &setting, std::ptr::null_mut()) })?;
    Ok(())
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// Longest span that we ask for (about 30 years), well inside the kernel's 64-bit nanoseconds.
const FAR: Duration = Duration::from_secs(1_000_000_000);
