//! One name for the descriptors of all systems: a file descriptor on Unix, a socket on Windows.

#[cfg(unix)]
pub use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// Value that is never a descriptor.
#[cfg(unix)]
pub const NONE: RawFd = -1;
/// Value that is never a descriptor: `INVALID_SOCKET`.
#[cfg(windows)]
pub const NONE: RawFd = RawFd::MAX;

/// Returns the descriptor with this number. Options and message properties carry a descriptor as
/// C's `int`, and a negative number means no descriptor. On Windows the same conversion is valid:
/// only 32 bits of a socket's number are significant, as between 32-bit and 64-bit programs.
pub fn from_int(number: i32) -> RawFd {
    RawFd::try_from(number).unwrap_or(NONE)
}

/// Returns the number of a descriptor as C's `int`.
#[allow(clippy::unnecessary_cast, reason = "descriptors are C's ints on some systems")]
pub fn to_int(fd: RawFd) -> i32 {
    fd as i32
}

/// Returns the number as a word of 64 bits.
#[allow(clippy::unnecessary_cast, reason = "that of Windows is one")]
pub fn to_u64(fd: RawFd) -> u64 {
    fd as u64
}
