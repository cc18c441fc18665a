//! Socket options and peer credentials of macOS and other Unix systems. What they cannot do is ENOTSUP.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{Address, RawAddress};
use super::identity::Credentials;
use crate::sys::check;

/// Whether Unix sockets have names outside the file system.
pub(super) const HAS_ABSTRACT: bool = false;

/// There are no sockets between virtual machines and their host.
pub(super) const VSOCK: Option<libc::c_int> = None;

pub(super) fn vsock(_cid: u32, _port: u32) -> Option<RawAddress> {
    None
}

pub(super) fn decode_vsock(_raw: &RawAddress) -> Option<Address> {
    None
}

#[cfg(target_vendor = "apple")]
pub(super) const KEEPALIVE_IDLE: libc::c_int = libc::TCP_KEEPALIVE;
#[cfg(not(target_vendor = "apple"))]
pub(super) const KEEPALIVE_IDLE: libc::c_int = libc::TCP_KEEPIDLE;

pub(super) fn set_priority(_fd: BorrowedFd<'_>, _priority: libc::c_int) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn set_busy_poll(_fd: BorrowedFd<'_>, _micros: libc::c_int) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn set_user_timeout(_fd: BorrowedFd<'_>, _millis: libc::c_int) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn limit_unsent(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn bind_to_device(_fd: BorrowedFd<'_>, _device: &str) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn defer_port_choice(_fd: BorrowedFd<'_>) {}

pub(super) fn pass_rights(_fd: BorrowedFd<'_>, _pass: bool) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn domain(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    Ok(RawAddress::ask(fd, libc::getsockname)?.family())
}

pub(super) fn peer_credentials(fd: BorrowedFd<'_>) -> io::Result<Credentials> {
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: the descriptor is open while borrowed; both results go into exclusive variables.
    check(unsafe { libc::getpeereid(fd.as_raw_fd(), &mut uid, &mut gid) })?;
    // Not every system tells the process.
    Ok(Credentials { pid: 0, uid, gid })
}

pub(super) fn unconfirmed(_fd: BorrowedFd<'_>) -> usize {
    0
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTSUP)
}
