//! Socket options and peer credentials of macOS and other Unix systems. A missing feature is
//! ENOTSUP. Differences between these systems are in sibling files.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{Address, RawAddress};
use super::identity::Credentials;
use crate::sys::check;
use crate::{kqueue, libc};

#[cfg_attr(apple, path = "unix/apple.rs")]
#[cfg_attr(target_os = "freebsd", path = "unix/freebsd.rs")]
#[cfg_attr(target_os = "netbsd", path = "unix/netbsd.rs")]
#[cfg_attr(not(any(apple, target_os = "freebsd", target_os = "netbsd")), path = "unix/other.rs")]
mod system;

pub(super) use system::{
    KEEPALIVE_COUNT, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, limit_unsent, set_user_timeout, unconfirmed,
};

/// True if Unix sockets may have names outside the file system.
pub(super) const HAS_ABSTRACT: bool = false;

/// Address family for connections between virtual machines and their host. Not available here.
pub(super) const VSOCK: Option<libc::c_int> = None;

pub(super) fn vsock(_cid: u32, _port: u32) -> Option<RawAddress> {
    None
}

pub(super) fn decode_vsock(_raw: &RawAddress) -> Option<Address> {
    None
}

/// Has no effect, as in libzmq. The option is a hint, and connections work without it.
pub(super) fn set_priority(_fd: BorrowedFd<'_>, _priority: libc::c_int) -> io::Result<()> {
    Ok(())
}

/// Has no effect, as in libzmq.
pub(super) fn set_busy_poll(_fd: BorrowedFd<'_>, _micros: libc::c_int) -> io::Result<()> {
    Ok(())
}

/// Has no effect: a socket always hears only the groups that it has joined.
pub(super) fn hear_joined_only(_fd: BorrowedFd<'_>, _v4: bool) {
    #[cfg(tautline_bsd)]
    libc::hear_joined_only(_fd, _v4);
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
    Ok(Credentials { pid: system::peer_process(fd).unwrap_or(0), uid, gid })
}

pub(super) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    has_ended(fd) && kqueue::has_hung_up(fd.as_raw_fd())
}

pub(super) fn has_ended(fd: BorrowedFd<'_>) -> bool {
    kqueue::has_ended(fd).unwrap_or(false)
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTSUP)
}
