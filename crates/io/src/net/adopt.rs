//! Descriptors that were opened elsewhere: what they are, and taking them over.

use crate::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use crate::libc;
use std::io;

use super::{Address, address, option, os};
use crate::sys::{self, check_open, prepare};

/// What kind of addresses a stream socket has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// TCP over IPv4.
    V4,
    /// TCP over IPv6, or both.
    V6,
    /// Unix domain.
    Unix,
    /// Between virtual machines and their host.
    Vsock,
}

/// Takes over a descriptor that a C caller hands in; EBADF if it is not open. It is closed when the
/// result is dropped.
///
/// # Safety
/// The caller must own the descriptor and give it up: nothing else may close it or keep using it.
pub unsafe fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    check_open(raw)?;
    // SAFETY: open as of just now, and ours (caller).
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A close-on-exec duplicate of a descriptor that a C caller keeps; EBADF if it is not open.
pub fn duplicate(raw: RawFd) -> io::Result<OwnedFd> {
    sys::duplicate(raw)
}

/// The family of a stream socket: ENOTSOCK for what is no socket, EPROTOTYPE for a socket of
/// another type, EAFNOSUPPORT for another family.
pub fn family_of(fd: BorrowedFd<'_>) -> io::Result<Family> {
    if option::read(fd, libc::SOL_SOCKET, libc::SO_TYPE)? != libc::SOCK_STREAM {
        return Err(io::Error::from_raw_os_error(libc::EPROTOTYPE));
    }
    match os::domain(fd)? {
        libc::AF_INET => Ok(Family::V4),
        libc::AF_INET6 => Ok(Family::V6),
        libc::AF_UNIX => Ok(Family::Unix),
        domain if Some(domain) == os::VSOCK => Ok(Family::Vsock),
        _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}

/// Whether a socket listens.
pub fn is_listening(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(option::read(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN)? != 0)
}

/// The address of the other end of any stream socket, whichever code owns it.
pub fn peer_address_of(fd: BorrowedFd<'_>) -> io::Result<Address> {
    address::peer_address(fd)
}

/// Checks that `fd` is a stream socket that listens or not, and gives it the flags all of ours
/// have. Its family.
pub(super) fn take_over(fd: &OwnedFd, listening: bool) -> io::Result<Family> {
    let family = family_of(fd.as_fd())?;
    if is_listening(fd.as_fd())? != listening {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    prepare(fd.as_fd())?;
    Ok(family)
}
