//! [`TimerFd`] as a kqueue that holds one timer. The descriptor of a kqueue can be polled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::kqueue::{EV_ADD, EV_DELETE, EV_ONESHOT, Filter, Flags, Kevent, Kqueue};
use crate::sys::retry;

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd(Kqueue);

impl TimerFd {
    /// Creates a timer that is not armed.
    pub fn new() -> io::Result<Self> {
        Ok(TimerFd(Kqueue::new()?))
    }

    /// Makes the descriptor readable once, `after` from now. Replaces an earlier setting, and
    /// forgets an expiry that was not drained.
    pub fn arm(&self, after: Duration) {
        self.disarm();
        // If the kernel has no memory for the timer, we cannot do anything.
        let _ = self.0.change(&[timer(EV_ADD | EV_ONESHOT).after(after.min(FAR))]);
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        // ENOENT: the timer was not armed, or has been drained.
        let _ = self.0.change(&[timer(EV_DELETE)]);
    }

    /// Makes the descriptor unreadable again. Returns true if the timer had expired.
    pub fn drain(&self) -> bool {
        let count = retry(|| self.0.wait(&mut [timer(0)], Some(Duration::ZERO)));
        matches!(count, Ok(1))
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn timer(flags: Flags) -> Kevent {
    Kevent::new(1, Filter::Timer, flags)
}

/// Longest span that we ask for, about 30 years.
const FAR: Duration = Duration::from_secs(1_000_000_000);
