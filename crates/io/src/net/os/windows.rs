//! Socket options of Windows. A missing feature is ENOTSUP.

use std::io;

use windows_sys::Win32::Networking::WinSock as ws;

use super::address::{Address, RawAddress};
use super::identity::Credentials;
use super::option;
use crate::fd::{AsRawFd, BorrowedFd};
use crate::libc;
use crate::poll::PollFd;
use crate::reactor::poll_with_sets;
use std::time::Duration;

/// True if Unix sockets may have names outside the file system.
pub(super) const HAS_ABSTRACT: bool = false;

/// Address family for connections between virtual machines and their host. Windows has no family
/// that is compatible with Linux's.
pub(super) const VSOCK: Option<libc::c_int> = None;

pub(super) fn vsock(_cid: u32, _port: u32) -> Option<RawAddress> {
    None
}

pub(super) fn decode_vsock(_raw: &RawAddress) -> Option<Address> {
    None
}

pub(super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
pub(super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPIDLE);
pub(super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

/// Has no effect, as in libzmq. The option is a hint, and connections work without it.
pub(super) fn set_priority(_fd: BorrowedFd<'_>, _priority: libc::c_int) -> io::Result<()> {
    Ok(())
}

/// Has no effect, as in libzmq.
pub(super) fn set_busy_poll(_fd: BorrowedFd<'_>, _micros: libc::c_int) -> io::Result<()> {
    Ok(())
}

/// Has a resolution of whole seconds, rounded up.
pub(super) fn set_user_timeout(fd: BorrowedFd<'_>, millis: libc::c_int) -> io::Result<()> {
    let seconds = millis / 1000 + libc::c_int::from(millis % 1000 > 0);
    option::set_if_supported(fd, libc::IPPROTO_TCP, ws::TCP_MAXRT, seconds)
}

pub(super) fn limit_unsent(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(unsupported())
}

/// Has no effect: a socket always hears only the groups that it has joined.
pub(super) fn hear_joined_only(_fd: BorrowedFd<'_>, _v4: bool) {}

pub(super) fn bind_to_device(_fd: BorrowedFd<'_>, _device: &str) -> io::Result<()> {
    Err(unsupported())
}

pub(super) fn defer_port_choice(_fd: BorrowedFd<'_>) {}

pub(super) fn domain(fd: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    // SAFETY: a struct of integers, which the option's value is.
    let info: ws::WSAPROTOCOL_INFOW =
        unsafe { option::read_struct(fd, libc::SOL_SOCKET, ws::SO_PROTOCOL_INFOW) }?;
    Ok(info.iAddressFamily)
}

pub(super) fn peer_credentials(_fd: BorrowedFd<'_>) -> io::Result<Credentials> {
    Err(unsupported())
}

pub(super) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    state(fd) & (PollFd::ERR | PollFd::INVALID) != 0
}

pub(super) fn has_ended(fd: BorrowedFd<'_>) -> bool {
    state(fd) & (PollFd::HUP | PollFd::ERR | PollFd::INVALID) != 0
}

/// Returns 0, because the system does not report the number.
pub(super) fn unconfirmed(_fd: BorrowedFd<'_>) -> usize {
    0
}

fn state(fd: BorrowedFd<'_>) -> i16 {
    // Reads Winsock's own flags: `poll` would report an end as readable.
    let mut fds = [libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    let _ = poll_with_sets(&mut fds, Some(Duration::ZERO));
    fds[0].revents
}

fn unsupported() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTSUP)
}
