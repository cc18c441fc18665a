//! [`TimerFd`] as a kqueue of its own with one timer event in it: a kqueue's descriptor can be polled.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::sys::{check, retry, timespec};

/// A one-shot timer with a descriptor. All methods may be called from any thread.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no arguments in, a descriptor of our own out.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::kqueue())?) };
        // SAFETY: fcntl on our own descriptor with an integer argument.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
        Ok(TimerFd(fd))
    }

    /// Makes the descriptor readable once, `after` from now. Replaces what was armed, and forgets an expiry
    /// that was not drained.
    pub fn arm(&self, after: Duration) {
        let micros = after.min(FAR).as_micros().max(1) as libc::intptr_t;
        self.disarm();
        self.change(libc::EV_ADD | libc::EV_ONESHOT, micros);
    }

    /// Stops the timer, and forgets an expiry that was not drained.
    pub fn disarm(&self) {
        self.change(libc::EV_DELETE, 0);
    }

    /// Makes the descriptor unreadable again; true if the timer had expired.
    pub fn drain(&self) -> bool {
        let mut event = event(0, 0);
        let at_once = timespec(Duration::ZERO);
        // SAFETY: no changes are read, one event is written into the exclusive variable, and the time span
        // outlives the call.
        let count = retry(|| unsafe {
            check(libc::kevent(self.0.as_raw_fd(), std::ptr::null(), 0, &mut event, 1, &at_once))
        });
        matches!(count, Ok(1))
    }

    /// The descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn change(&self, flags: u16, micros: libc::intptr_t) {
        let change = event(flags, micros);
        // SAFETY: one change is read from a variable that outlives the call, nothing is written. Deleting a
        // timer that is not there fails harmlessly.
        unsafe {
            libc::kevent(self.0.as_raw_fd(), &change, 1, std::ptr::null_mut(), 0, std::ptr::null());
        }
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn event(flags: u16, micros: libc::intptr_t) -> libc::kevent {
    // SAFETY: kevent is a plain C struct for which all zeroes is a valid value.
    let mut event: libc::kevent = unsafe { std::mem::zeroed() };
    event.ident = 1;
    event.filter = libc::EVFILT_TIMER;
    event.flags = flags;
    event.fflags = libc::NOTE_USECONDS;
    event.data = micros as _;
    event
}

/// The longest span we ask for, about 30 years.
const FAR: Duration = Duration::from_secs(1_000_000_000);
