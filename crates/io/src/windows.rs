//! The module `libc` on Windows, used by the code that all systems share. Gives Winsock's calls,
//! types and numbers the names of POSIX.
//!
//! Error numbers are the system's, as in `std::io::Error`. C callers know other numbers by the same
//! names ([`crate::errno`]).

#![allow(non_camel_case_types, reason = "C's names")]

pub(crate) mod crt;

use windows_sys::Win32::Foundation as base;
use windows_sys::Win32::Networking::WinSock as ws;

use crate::fd::RawFd;

pub(crate) use std::ffi::{c_char, c_int, c_void};

pub(crate) type socklen_t = i32;
pub(crate) type ssize_t = isize;
pub(crate) type sa_family_t = u16;

/// Placeholder type. Windows has no signals, so no meaningful value exists.
pub(crate) type sigset_t = u32;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct in_addr {
    pub(crate) s_addr: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct in6_addr {
    pub(crate) s6_addr: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct sockaddr_in {
    pub(crate) sin_family: sa_family_t,
    pub(crate) sin_port: u16,
    pub(crate) sin_addr: in_addr,
    pub(crate) sin_zero: [c_char; 8],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct sockaddr_in6 {
    pub(crate) sin6_family: sa_family_t,
    pub(crate) sin6_port: u16,
    pub(crate) sin6_flowinfo: u32,
    pub(crate) sin6_addr: in6_addr,
    pub(crate) sin6_scope_id: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct sockaddr_un {
    pub(crate) sun_family: sa_family_t,
    pub(crate) sun_path: [c_char; 108],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct pollfd {
    pub(crate) fd: RawFd,
    pub(crate) events: i16,
    pub(crate) revents: i16,
}

const _: () = {
    assert!(size_of::<sockaddr_in>() == size_of::<ws::SOCKADDR_IN>());
    assert!(size_of::<sockaddr_in6>() == size_of::<ws::SOCKADDR_IN6>());
    assert!(size_of::<sockaddr_un>() == size_of::<ws::SOCKADDR_UN>());
    assert!(size_of::<pollfd>() == size_of::<ws::WSAPOLLFD>());
    assert!(align_of::<pollfd>() == align_of::<ws::WSAPOLLFD>());
};

pub(crate) use ws::ADDRINFOA as addrinfo;
pub(crate) use ws::LINGER as linger;
pub(crate) use ws::SOCKADDR as sockaddr;
pub(crate) use ws::SOCKADDR_STORAGE as sockaddr_storage;

pub(crate) const AF_UNSPEC: c_int = ws::AF_UNSPEC as c_int;
pub(crate) const AF_UNIX: c_int = ws::AF_UNIX as c_int;
pub(crate) const AF_INET: c_int = ws::AF_INET as c_int;
pub(crate) const AF_INET6: c_int = ws::AF_INET6 as c_int;
pub(crate) use ws::{SOCK_DGRAM, SOCK_STREAM};

pub(crate) use ws::{
    IP_MULTICAST_IF, IP_MULTICAST_LOOP, IP_MULTICAST_TTL, IP_TOS, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP,
    IPV6_MULTICAST_HOPS, IPV6_MULTICAST_IF, IPV6_MULTICAST_LOOP, IPV6_TCLASS, IPV6_V6ONLY, SO_ACCEPTCONN,
    SO_ERROR, SO_KEEPALIVE, SO_LINGER, SO_RCVBUF, SO_REUSEADDR, SO_SNDBUF, SO_TYPE, SOL_SOCKET, TCP_KEEPCNT,
    TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_NODELAY,
};
/// Windows has no SO_REUSEPORT. SO_REUSEADDR alone has the meaning that both together have on Unix.
pub(crate) const SO_REUSEPORT: c_int = ws::SO_REUSEADDR;
pub(crate) use ws::{SD_BOTH as SHUT_RDWR, SD_RECEIVE as SHUT_RD, SD_SEND as SHUT_WR};

pub(crate) const POLLIN: i16 = ws::POLLRDNORM;
pub(crate) const POLLOUT: i16 = ws::POLLWRNORM;
/// Winsock rejects a request for POLLPRI, and reports urgent data as this event.
pub(crate) const POLLPRI: i16 = ws::POLLRDBAND;
pub(crate) use ws::{POLLERR, POLLHUP, POLLNVAL};

pub(crate) const AI_NUMERICHOST: c_int = ws::AI_NUMERICHOST as c_int;
pub(crate) const EAI_AGAIN: c_int = ws::WSATRY_AGAIN;
/// A value that never occurs. On Windows the resolver returns the system's numbers directly.
pub(crate) const EAI_SYSTEM: c_int = -1;
pub(crate) const EAI_MEMORY: c_int = base::ERROR_NOT_ENOUGH_MEMORY as c_int;

pub(crate) const EAGAIN: c_int = ws::WSAEWOULDBLOCK;
pub(crate) const EMFILE: c_int = ws::WSAEMFILE;
pub(crate) const ENFILE: c_int = base::ERROR_TOO_MANY_OPEN_FILES as c_int;
pub(crate) const ENOBUFS: c_int = ws::WSAENOBUFS;
pub(crate) const EACCES: c_int = ws::WSAEACCES;
pub(crate) const EADDRINUSE: c_int = ws::WSAEADDRINUSE;
pub(crate) const EAFNOSUPPORT: c_int = ws::WSAEAFNOSUPPORT;
pub(crate) const EBADF: c_int = ws::WSAEBADF;
pub(crate) const ECONNABORTED: c_int = ws::WSAECONNABORTED;
pub(crate) const ECONNREFUSED: c_int = ws::WSAECONNREFUSED;
pub(crate) const EEXIST: c_int = base::ERROR_ALREADY_EXISTS as c_int;
pub(crate) const EHOSTDOWN: c_int = ws::WSAEHOSTDOWN;
pub(crate) const EHOSTUNREACH: c_int = ws::WSAEHOSTUNREACH;
pub(crate) const EINPROGRESS: c_int = ws::WSAEINPROGRESS;
pub(crate) const EINTR: c_int = ws::WSAEINTR;
pub(crate) const EINVAL: c_int = ws::WSAEINVAL;
pub(crate) const ENAMETOOLONG: c_int = ws::WSAENAMETOOLONG;
pub(crate) const ENETDOWN: c_int = ws::WSAENETDOWN;
pub(crate) const ENETUNREACH: c_int = ws::WSAENETUNREACH;
pub(crate) const ENODEV: c_int = base::ERROR_DEV_NOT_EXIST as c_int;
pub(crate) const ENOENT: c_int = base::ERROR_FILE_NOT_FOUND as c_int;
pub(crate) const ENOMEM: c_int = base::ERROR_NOT_ENOUGH_MEMORY as c_int;
pub(crate) const ENOPROTOOPT: c_int = ws::WSAENOPROTOOPT;
pub(crate) const ENOSYS: c_int = base::ERROR_CALL_NOT_IMPLEMENTED as c_int;
pub(crate) const ENOTCONN: c_int = ws::WSAENOTCONN;
pub(crate) const ENOTSUP: c_int = ws::WSAEOPNOTSUPP;
pub(crate) const EOPNOTSUPP: c_int = ws::WSAEOPNOTSUPP;
pub(crate) const EPERM: c_int = base::ERROR_PRIVILEGE_NOT_HELD as c_int;
/// Winsock has no such number. This is the number with which a connection aborts.
pub(crate) const EPROTO: c_int = ws::WSAECONNABORTED;
pub(crate) const EPROTOTYPE: c_int = ws::WSAEPROTOTYPE;

pub(crate) use ws::freeaddrinfo;

/// Functions of POSIX, for a socket numbered as in this crate. The result is -1 for a failure.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty as $given:ty),*);)*) => {$(
        /// POSIX's function of this name.
        ///
        /// # Safety
        /// The caller keeps the conditions of the system's function of this name.
        pub(crate) unsafe extern "C" fn $name(fd: RawFd, $($argument: $kind),*) -> c_int {
            // SAFETY: the caller guarantees it.
            unsafe { ws::$name(fd as ws::SOCKET, $($argument as $given),*) }
        }
    )*};
}

functions! {
    bind(address: *const sockaddr as *const sockaddr, length: socklen_t as socklen_t);
    listen(backlog: c_int as c_int);
    shutdown(how: c_int as c_int);
    getsockname(address: *mut sockaddr as *mut sockaddr, length: *mut socklen_t as *mut socklen_t);
    getpeername(address: *mut sockaddr as *mut sockaddr, length: *mut socklen_t as *mut socklen_t);
    setsockopt(level: c_int as c_int, name: c_int as c_int, value: *const c_void as *const u8, length: socklen_t as socklen_t);
    getsockopt(level: c_int as c_int, name: c_int as c_int, value: *mut c_void as *mut u8, length: *mut socklen_t as *mut socklen_t);
}

/// POSIX's function of this name.
///
/// # Safety
/// `bytes` has `length` readable bytes.
pub(crate) unsafe fn send(fd: RawFd, bytes: *const c_void, length: usize, flags: c_int) -> ssize_t {
    let length = c_int::try_from(length).unwrap_or(c_int::MAX);
    // SAFETY: the caller guarantees it.
    unsafe { ws::send(fd as ws::SOCKET, bytes.cast(), length, flags) as ssize_t }
}

/// POSIX's function of this name.
///
/// # Safety
/// `bytes` has `length` writable bytes.
pub(crate) unsafe fn recv(fd: RawFd, bytes: *mut c_void, length: usize, flags: c_int) -> ssize_t {
    let length = c_int::try_from(length).unwrap_or(c_int::MAX);
    // SAFETY: the caller guarantees it.
    unsafe { ws::recv(fd as ws::SOCKET, bytes.cast(), length, flags) as ssize_t }
}

/// POSIX's function of this name. Starts Winsock first.
///
/// # Safety
/// Both strings are terminated or null. The hints are null or valid. The call has exclusive access
/// to the result.
pub(crate) unsafe fn getaddrinfo(
    host: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    crate::sys::start_winsock();
    // SAFETY: null or a terminated string.
    if !host.is_null() && unsafe { *host } == 0 {
        // Winsock takes an empty name for the name of this host.
        return ws::WSAHOST_NOT_FOUND;
    }
    // SAFETY: the caller guarantees it.
    unsafe { ws::getaddrinfo(host.cast(), service.cast(), hints, result) }
}

/// POSIX's function of this name.
///
/// # Safety
/// Has no requirements; unsafe only because POSIX's function is.
pub(crate) unsafe fn gai_strerror(number: c_int) -> *const c_char {
    match number {
        EAI_AGAIN => c"temporary failure in name resolution".as_ptr(),
        _ => c"name not known".as_ptr(),
    }
}

/// POSIX's function of this name. Reports a pending connection by POSIX's number.
///
/// # Safety
/// `address` has `length` readable bytes.
pub(crate) unsafe fn connect(fd: RawFd, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller guarantees it.
    let outcome = unsafe { ws::connect(fd as ws::SOCKET, address, length) };
    if outcome != 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock {
        // SAFETY: a number, and no preconditions.
        unsafe { ws::WSASetLastError(EINPROGRESS) };
    }
    outcome
}
