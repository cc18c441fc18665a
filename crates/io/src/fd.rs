//! What the system calls a descriptor, under one name: of Unix systems a file descriptor, of
//! Windows a socket.

#[cfg(unix)]
pub use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// What no descriptor is.
#[cfg(unix)]
pub const NONE: RawFd = -1;
/// What no descriptor is: `INVALID_SOCKET`.
#[cfg(windows)]
pub const NONE: RawFd = RawFd::MAX;

/// The descriptor with this number in C's type `int`, by which options and properties of messages
/// name one; negative for none. On Windows too: of a socket's number 32 bits count, as between its
/// programs of 32 and of 64 bits.
pub fn from_int(number: i32) -> RawFd {
    RawFd::try_from(number).unwrap_or(NONE)
}

/// The reverse.
#[allow(clippy::unnecessary_cast, reason = "descriptors are C's ints on some systems")]
pub fn to_int(fd: RawFd) -> i32 {
    fd as i32
}

/// The number as a word of 64 bits.
#[allow(clippy::unnecessary_cast, reason = "that of Windows is one")]
pub fn to_u64(fd: RawFd) -> u64 {
    fd as u64
}
