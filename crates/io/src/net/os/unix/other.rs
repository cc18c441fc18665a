//! Socket options of OpenBSD, which lacks all of them, and of DragonFly BSD.

use std::io;
use std::os::fd::BorrowedFd;

use crate::libc;

#[cfg(target_os = "dragonfly")]
pub(in super::super) const KEEPALIVE_COUNT: Option<libc::c_int> = Some(libc::TCP_KEEPCNT);
#[cfg(target_os = "dragonfly")]
pub(in super::super) const KEEPALIVE_IDLE: Option<libc::c_int> = Some(libc::TCP_KEEPIDLE);
#[cfg(target_os = "dragonfly")]
pub(in super::super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = Some(libc::TCP_KEEPINTVL);

#[cfg(not(target_os = "dragonfly"))]
pub(in super::super) const KEEPALIVE_COUNT: Option<libc::c_int> = None;
#[cfg(not(target_os = "dragonfly"))]
pub(in super::super) const KEEPALIVE_IDLE: Option<libc::c_int> = None;
#[cfg(not(target_os = "dragonfly"))]
pub(in super::super) const KEEPALIVE_INTERVAL: Option<libc::c_int> = None;

pub(in super::super) fn set_user_timeout(_fd: BorrowedFd<'_>, _millis: libc::c_int) -> io::Result<()> {
    Err(super::unsupported())
}

pub(in super::super) fn limit_unsent(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(super::unsupported())
}

pub(in super::super) fn unconfirmed(_fd: BorrowedFd<'_>) -> usize {
    0
}

pub(super) fn peer_process(_fd: BorrowedFd<'_>) -> io::Result<i32> {
    Err(super::unsupported())
}
