//! [`WakeFd`] as an eventfd: one descriptor, one counter.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys::{check, check_length, retry};

/// A descriptor that is readable from [`wake`](WakeFd::wake) until [`drain`](WakeFd::drain).
#[derive(Debug)]
pub struct WakeFd(OwnedFd);

impl WakeFd {
    /// Creates a descriptor that is not woken.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes integers and returns a descriptor of our own.
        let fd =
            unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?) };
        Ok(WakeFd(fd))
    }

    /// Makes the descriptor readable. Never blocks and cannot fail, because a full counter is
    /// readable. The thread that drains sees all memory writes made before this call.
    pub fn wake(&self) {
        let one = 1_u64;
        // SAFETY: the kernel reads 8 bytes from a u64.
        let _ = retry(|| unsafe {
            check_length(libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of_val(&one)))
        });
    }

    /// Makes the descriptor unreadable again. Returns true if it had been woken.
    pub fn drain(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: the kernel writes 8 bytes into a u64.
        retry(|| unsafe {
            check_length(libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of_val(&count)))
        })
        .is_ok()
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
