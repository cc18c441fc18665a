//! Checks descriptors that other code opened, and takes them over.

use crate::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use crate::libc;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::{Address, address, option, os};
use crate::sys::{check_open, prepare};

/// Address family of a stream socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// TCP over IPv4.
    V4,
    /// TCP over IPv6, or over both versions.
    V6,
    /// Unix domain.
    Unix,
    /// Between virtual machines and their host.
    Vsock,
}

/// Numbers of the descriptors that were taken over from the program and are still open.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Number of a descriptor that was taken over. Dropping this allows the number to be taken over
/// again.
#[derive(Debug)]
pub(super) struct AdoptedFd(RawFd);

impl AdoptedFd {
    /// Registers the number. Fails with EBADF if it was taken over already: closing a descriptor
    /// twice might close another descriptor that got its number in between.
    fn new(raw: RawFd) -> io::Result<AdoptedFd> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.contains(&raw) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        taken.push(raw);
        Ok(AdoptedFd(raw))
    }
}

impl Drop for AdoptedFd {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|raw| *raw != self.0);
    }
}

/// Takes over a listening socket that a C caller gives up, and returns it with its family. After an
/// error the socket still belongs to the caller. Fails with EBADF if it is not open or was taken
/// over before, or with the errors of [`take_over`].
pub(super) fn take_listener(raw: RawFd) -> io::Result<(AdoptedFd, OwnedFd, Family)> {
    let taken = AdoptedFd::new(raw)?;
    check_open(raw)?;
    // SAFETY: the descriptor was open just now, and we do not close it during this call.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    let family = take_over(fd, true)?;
    // Checks the next query of a listener now, so that no later step can fail.
    address::local_address(fd)?;
    // SAFETY: the caller gives it up, and `AdoptedFd` shows that no other code here has taken it.
    Ok((taken, unsafe { OwnedFd::from_raw_fd(raw) }, family))
}

/// Returns the family of a stream socket. Fails with ENOTSOCK if the descriptor is not a socket,
/// EPROTOTYPE for a socket of another type, and EAFNOSUPPORT for another family.
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

/// True if a socket listens.
pub fn is_listening(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(option::read(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN)? != 0)
}

/// Returns the peer address of any stream socket, including sockets that other code owns.
pub fn peer_address_of(fd: BorrowedFd<'_>) -> io::Result<Address> {
    address::peer_address(fd)
}

/// Checks that `fd` is a stream socket whose listening state is `listening`, sets the flags that
/// all our sockets have, and returns its family.
pub(super) fn take_over(fd: BorrowedFd<'_>, listening: bool) -> io::Result<Family> {
    let family = family_of(fd)?;
    if is_listening(fd)? != listening {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    prepare(fd)?;
    Ok(family)
}
