//! [`TimerFd`] as a kqueue of its own with one timer in it: a kqueue's descriptor can be polled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::kqueue::{EV_ADD, EV_DELETE, EV_ONESHOT, Filter, Flags, Kevent, Kqueue};
use crate::sys::retry;

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd(Kqueue);

impl TimerFd {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        Ok(TimerFd(Kqueue::new()?))
    }

    /// Makes the descriptor readable once, `after` from now. Replaces what was armed, and forgets
    /// an expiry that was not drained.
    pub fn arm(&self, after: Duration) {
        self.disarm();
        // There is nothing to be done where the kernel has no memory for it.
        let _ = self.0.change(&[timer(EV_ADD | EV_ONESHOT).after(after.min(FAR))]);
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        // ENOENT: it was not armed, or has been drained.
        let _ = self.0.change(&[timer(EV_DELETE)]);
    }

    /// Makes the descriptor unreadable again; true if the timer had expired.
    pub fn drain(&self) -> bool {
        let count = retry(|| self.0.wait(&mut [timer(0)], Some(Duration::ZERO)));
        matches!(count, Ok(1))
    }

    /// The descriptor to wait on.
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

/// The longest span we ask for, about 30 years.
const FAR: Duration = Duration::from_secs(1_000_000_000);
