//! Readiness of a few descriptors, queried once. The owner of a socket sleeps in this call. For
//! many descriptors that stay registered, see [`crate::reactor`].

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::fd::RawFd;
use crate::libc;
use crate::sys;

/// One descriptor to watch, with the layout of C's `struct pollfd`. A negative `fd` is skipped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollFd {
    /// The descriptor. A descriptor that is not open is reported with [`PollFd::INVALID`].
    pub fd: RawFd,
    /// Events to wait for.
    pub events: i16,
    /// Events that occurred; overwritten by [`poll`].
    pub revents: i16,
}

impl PollFd {
    /// Reading would not block.
    pub const IN: i16 = libc::POLLIN;
    /// Writing would not block.
    pub const OUT: i16 = libc::POLLOUT;
    /// An error is pending; always reported.
    pub const ERR: i16 = libc::POLLERR;
    /// Out-of-band data.
    pub const PRI: i16 = libc::POLLPRI;
    /// The other end hung up; always reported.
    pub const HUP: i16 = libc::POLLHUP;
    /// The other end will send no further data. 0 on systems that do not report it.
    #[cfg(linux_kernel)]
    pub const ENDED: i16 = libc::POLLRDHUP;
    #[cfg(not(linux_kernel))]
    #[allow(missing_docs)]
    pub const ENDED: i16 = 0;
    /// The descriptor is not open; always reported.
    pub const INVALID: i16 = libc::POLLNVAL;

    /// Watches `fd` for `events`.
    pub fn new(fd: RawFd, events: i16) -> Self {
        PollFd { fd, events, revents: 0 }
    }
}

const _: () = assert!(
    size_of::<PollFd>() == size_of::<libc::pollfd>() && align_of::<PollFd>() == align_of::<libc::pollfd>()
);

/// Waits until a descriptor is ready, and returns the number of ready descriptors, or 0 after
/// `timeout`. A signal ends the wait with [`io::ErrorKind::Interrupted`].
pub fn poll(fds: &mut [PollFd], timeout: Option<Duration>) -> io::Result<usize> {
    // SAFETY: PollFd has the fields of libc::pollfd in the same order (repr(C)), the same size and
    // alignment (asserted above), and every bit pattern is valid for both.
    let fds = unsafe { std::slice::from_raw_parts_mut(fds.as_mut_ptr().cast::<libc::pollfd>(), fds.len()) };
    match MASK.get() {
        None => sys::poll(fds, timeout, None),
        Some(SignalMask(mask)) => sys::poll(fds, timeout, Some(&mask)),
    }
}

/// Set of signals that a thread blocks while it sleeps in [`poll`]. The set replaces the thread's
/// own.
#[derive(Clone, Copy)]
pub struct SignalMask(libc::sigset_t);

thread_local! {
    static MASK: Cell<Option<SignalMask>> = const { Cell::new(None) };
}

impl SignalMask {
    /// Reads the system's `sigset_t` at this place. Returns `None` for null.
    ///
    /// # Safety
    /// `mask` is null, or points to a `sigset_t` of the system.
    pub unsafe fn from_raw(mask: *const c_void) -> Option<SignalMask> {
        // SAFETY: the caller guarantees the pointer. C may pass it without our alignment.
        (!mask.is_null()).then(|| SignalMask(unsafe { mask.cast::<libc::sigset_t>().read_unaligned() }))
    }

    /// Catches a pending signal that this mask does not block. Fails with
    /// [`io::ErrorKind::Interrupted`] if there was one.
    pub fn catch(self) -> io::Result<()> {
        self.during(|| poll(&mut [], Some(Duration::ZERO))).map(|_| ())
    }

    /// Applies this mask to every [`poll`] that the calling thread makes within `call`.
    pub fn during<T>(self, call: impl FnOnce() -> T) -> T {
        struct Restore(Option<SignalMask>);
        impl Drop for Restore {
            fn drop(&mut self) {
                MASK.set(self.0);
            }
        }
        let _restore = Restore(MASK.replace(Some(self)));
        call()
    }
}

impl fmt::Debug for SignalMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalMask").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::fd::{self, AsRawFd};
    use crate::net::Stream;

    #[test]
    fn reports_readable_writable_hang_up_and_invalid() {
        let (near, far) = Stream::pair().unwrap();
        let mut fds = [
            PollFd::new(near.as_fd().as_raw_fd(), PollFd::IN | PollFd::OUT),
            PollFd::new(fd::NONE, PollFd::IN),
            PollFd::new(fd::from_int(i32::MAX), PollFd::IN),
        ];
        assert_eq!(poll(&mut fds, None).unwrap(), 2);
        assert_eq!(fds[0].revents, PollFd::OUT);
        assert_eq!(fds[1].revents, 0);
        assert_eq!(fds[2].revents, PollFd::INVALID);

        far.write(b"x").unwrap();
        poll(&mut fds, None).unwrap();
        assert_eq!(fds[0].revents, PollFd::IN | PollFd::OUT);

        drop(far);
        assert_eq!(near.read(&mut [0; 1]).unwrap(), 1);
        poll(&mut fds, None).unwrap();
        // A pair over TCP has only ended.
        let told = if cfg!(windows) { PollFd::IN } else { PollFd::IN | PollFd::HUP };
        assert_eq!(fds[0].revents & !PollFd::OUT, told);
    }

    #[test]
    fn waits_at_least_the_timeout() {
        for timeout in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(2)] {
            let start = Instant::now();
            assert_eq!(poll(&mut [], Some(timeout)).unwrap(), 0);
            assert!(start.elapsed() >= timeout);
        }
    }
}
