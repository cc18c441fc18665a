//! Socket options of macOS and iOS.

use std::io;
use std::os::fd::BorrowedFd;

use crate::libc;
use crate::net::option;

/// Options that the C library's header has and its Rust bindings lack (netinet/tcp.h).
const TCP_CONNECTIONTIMEOUT: libc::c_int = 0x20;
const TCP_RXT_CONNDROPTIME: libc::c_int = 0x80;
const TCP_NOTSENT_LOWAT: libc::c_int = 0x201;

pub(in super::super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
pub(in super::super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPALIVE);
pub(in super::super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

/// Applies while connecting and afterwards. Has a resolution of whole seconds.
pub(in super::super) fn set_user_timeout(fd: BorrowedFd<'_>, millis: libc::c_int) -> io::Result<()> {
    let seconds = millis / 1000 + libc::c_int::from(millis % 1000 > 0);
    option::set(fd, libc::IPPROTO_TCP, TCP_CONNECTIONTIMEOUT, seconds)?;
    option::set(fd, libc::IPPROTO_TCP, TCP_RXT_CONNDROPTIME, seconds)
}

pub(in super::super) fn limit_unsent(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    option::set(fd, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes)
}

pub(in super::super) fn unconfirmed(fd: BorrowedFd<'_>) -> usize {
    option::read(fd, libc::SOL_SOCKET, libc::SO_NWRITE).ok().and_then(|n| n.try_into().ok()).unwrap_or(0)
}

pub(super) fn peer_process(fd: BorrowedFd<'_>) -> io::Result<i32> {
    option::read(fd, libc::SOL_LOCAL, libc::LOCAL_PEERPID)
}
