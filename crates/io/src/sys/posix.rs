//! Descriptor primitives that all Unix systems have.

use std::io;
use std::time::Duration;

use super::check;
use crate::fd::{AsRawFd, BorrowedFd, RawFd};
use crate::libc;

/// Option that lets a listener take a port on which connections of an earlier listener linger.
pub(crate) const REUSE_OLD_PORT: libc::c_int = libc::SO_REUSEADDR;

/// Converts to a C time span. Seconds beyond the range of a `long` become its largest value.
pub(crate) fn timespec(span: Duration) -> libc::timespec {
    libc::timespec {
        // Not `time_t`: its size in the crate `libc` will not match musl for ever.
        tv_sec: libc::c_long::try_from(span.as_secs()).unwrap_or(libc::c_long::MAX) as _,
        tv_nsec: span.subsec_nanos() as _,
    }
}

/// Makes a descriptor close-on-exec and non-blocking.
pub(crate) fn set_close_on_exec_and_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: fcntl on a descriptor that the borrow keeps open; these commands take and return
    // integers.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFD))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flags | libc::FD_CLOEXEC))?;
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Fails with EBADF if the number is not an open descriptor.
pub(crate) fn check_open(raw: RawFd) -> io::Result<()> {
    // SAFETY: fcntl accepts any number; F_GETFD has no effect.
    check(unsafe { libc::fcntl(raw, libc::F_GETFD) }).map(drop)
}
