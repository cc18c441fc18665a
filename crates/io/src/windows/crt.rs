//! The error numbers of Microsoft's C library (`errno.h`), which are equal in all its versions, and
//! the few functions of it that we need.

#![allow(missing_docs, reason = "C's names")]

use std::ffi::{c_char, c_int};

pub const EACCES: c_int = 13;
pub const EADDRINUSE: c_int = 100;
pub const EADDRNOTAVAIL: c_int = 101;
pub const EAFNOSUPPORT: c_int = 102;
pub const EAGAIN: c_int = 11;
pub(crate) const EALREADY: c_int = 103;
pub const EBADF: c_int = 9;
pub const EBUSY: c_int = 16;
pub const ECONNABORTED: c_int = 106;
pub const ECONNREFUSED: c_int = 107;
pub const ECONNRESET: c_int = 108;
pub const EEXIST: c_int = 17;
pub const EFAULT: c_int = 14;
pub const EHOSTUNREACH: c_int = 110;
pub(crate) const EILSEQ: c_int = 42;
pub const EINPROGRESS: c_int = 112;
pub const EINTR: c_int = 4;
pub const EINVAL: c_int = 22;
pub const EIO: c_int = 5;
pub const EMFILE: c_int = 24;
pub const EMSGSIZE: c_int = 115;
pub const ENAMETOOLONG: c_int = 38;
pub const ENETDOWN: c_int = 116;
pub const ENETRESET: c_int = 117;
pub const ENETUNREACH: c_int = 118;
pub const ENFILE: c_int = 23;
pub const ENOBUFS: c_int = 119;
pub const ENODEV: c_int = 19;
pub const ENOENT: c_int = 2;
pub const ENOMEM: c_int = 12;
pub const ENOPROTOOPT: c_int = 123;
pub(crate) const ENOSYS: c_int = 40;
pub const ENOTCONN: c_int = 126;
pub const ENOTSOCK: c_int = 128;
pub const ENOTSUP: c_int = 129;
pub const EPERM: c_int = 1;
pub const EPIPE: c_int = 32;
pub const EPROTO: c_int = 134;
pub const EPROTONOSUPPORT: c_int = 135;
pub const ETIMEDOUT: c_int = 138;
pub const EWOULDBLOCK: c_int = 140;

unsafe extern "C" {
    pub(crate) fn _errno() -> *mut c_int;
    pub(crate) fn strerror(number: c_int) -> *const c_char;
}
