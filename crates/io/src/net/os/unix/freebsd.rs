//! Socket options of FreeBSD.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::libc;
use crate::net::option;
use crate::sys::check;

pub(in super::super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
pub(in super::super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPIDLE);
pub(in super::super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

/// Has a resolution of whole seconds.
pub(in super::super) fn set_user_timeout(fd: BorrowedFd<'_>, millis: libc::c_int) -> io::Result<()> {
    let seconds = millis / 1000 + libc::c_int::from(millis % 1000 > 0);
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_MAXUNACKTIME, seconds)
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

/// Returns the peer's process id since FreeBSD 13, and 0 on older versions.
pub(super) fn peer_process(fd: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: LOCAL_PEERCRED's value is an xucred, integers and a pointer that may be null.
    let raw: libc::xucred = unsafe { option::read_struct(fd, libc::SOL_LOCAL, libc::LOCAL_PEERCRED)? };
    // SAFETY: the field shares its place with a pointer; every value is an integer.
    Ok(unsafe { raw.cr_pid__c_anonymous_union.cr_pid })
}
