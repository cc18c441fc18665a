//! [`TimerFd`] as a Linux timerfd on the monotonic clock.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::sys::{check, check_length, retry, timespec};

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        // SAFETY: integers in, a descriptor of our own out.
        let fd = unsafe {
            OwnedFd::from_raw_fd(check(libc::timerfd_create(
                libc::CLOCK_MONOTONIC,
                libc::TFD_CLOEXEC | libc::TFD_NONBLOCK,
            ))?)
        };
        Ok(TimerFd(fd))
    }

    /// Makes the descriptor readable once, `after` from now. Replaces what was armed, and forgets an expiry
    /// that was not drained.
    pub fn arm(&self, after: Duration) {
        // The kernel takes zero for "disarm".
        self.set(timespec(after.clamp(Duration::from_nanos(1), FAR)));
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        self.set(timespec(Duration::ZERO));
    }

    /// Makes the descriptor unreadable again; true if the timer had expired.
    pub fn drain(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: the kernel writes 8 bytes into a u64.
        retry(|| unsafe {
            check_length(libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of_val(&count)))
        })
        .is_ok()
    }

    /// The descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn set(&self, value: libc::timespec) {
        let setting = libc::itimerspec { it_interval: timespec(Duration::ZERO), it_value: value };
        // SAFETY: the kernel reads one itimerspec that outlives the call; a null old value is not written.
        // With a valid descriptor and nanoseconds below one second the call has no way to fail.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &setting, std::ptr::null_mut()) };
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The longest span we ask for (about 30 years), well inside the kernel's 64-bit nanoseconds.
const FAR: Duration = Duration::from_secs(1_000_000_000);
