//! Descriptors that were opened elsewhere: what they are, and taking them over.

use crate::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use crate::libc;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::{Address, address, option, os};
use crate::sys::{check_open, prepare};

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

/// Numbers of the descriptors that were taken over from the program and are still open.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// The number of a descriptor that was taken over. It may be taken over again once this is dropped.
#[derive(Debug)]
pub(super) struct Taken(RawFd);

impl Taken {
    /// EBADF if the descriptor was taken over already: closing it twice might close another one
    /// that has got its number meanwhile.
    fn new(raw: RawFd) -> io::Result<Taken> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&raw) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        taken.push(raw);
        Ok(Taken(raw))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|raw| *raw != self.0);
    }
}

/// Takes over a listening socket that a C caller gives up, with its family. After an error the
/// socket is still the caller's: EBADF if it is not open or was taken over before, or as
/// [`take_over`].
pub(super) fn take_listener(raw: RawFd) -> io::Result<(Taken, OwnedFd, Family)> {
    let taken = Taken::new(raw)?;
    check_open(raw)?;
    // SAFETY: open as of just now, and not closed by us during this call.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    let family = take_over(fd, true)?;
    // What a listener is asked next: after this, nothing fails any more.
    address::local_address(fd)?;
    // SAFETY: the caller gives it up, and nothing else here has taken it (`Taken`).
    Ok((taken, unsafe { OwnedFd::from_raw_fd(raw) }, family))
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
pub(super) fn take_over(fd: BorrowedFd<'_>, listening: bool) -> io::Result<Family> {
    let family = family_of(fd)?;
    if is_listening(fd)? != listening {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    prepare(fd)?;
    Ok(family)
}
