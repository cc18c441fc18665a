//! Socket options of NetBSD.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::libc;
use crate::net::option;
use crate::sys::check;

pub(in super::super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
pub(in super::super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPIDLE);
pub(in super::super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

pub(in super::super) fn set_user_timeout(_fd: BorrowedFd<'_>, _millis: libc::c_int) -> io::Result<()> {
    Err(super::unsupported())
}

pub(in super::super) fn limit_unsent(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(super::unsupported())
}

pub(in super::super) fn unconfirmed(fd: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while borrowed; FIONWRITE writes one int, which is ours.
    match check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONWRITE, &raw mut bytes) }) {
        Ok(_) => usize::try_from(bytes).unwrap_or(0),
        Err(_) => 0,
    }
}

pub(super) fn peer_process(fd: BorrowedFd<'_>) -> io::Result<i32> {
    // Level of local sockets, which has no name on NetBSD.
    const SOL_LOCAL: libc::c_int = 0;
    // SAFETY: LOCAL_PEEREID's value is an unpcbid, three integers.
    let raw: libc::unpcbid = unsafe { option::read_struct(fd, SOL_LOCAL, libc::LOCAL_PEEREID)? };
    Ok(raw.unp_pid)
}
