//! Reads and sets one socket option.

use std::io;

use crate::fd::{AsRawFd, BorrowedFd};
use crate::libc;
use crate::sys::check;

/// Sets an option whose value is an int.
pub(super) fn set(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}

/// Sets an option whose value is bytes.
pub(super) fn set_bytes(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the descriptor is open while borrowed. Pointer and length describe the slice, which
    // the kernel copies without a need for alignment.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as libc::socklen_t)
    })?;
    Ok(())
}

/// Sets the type of service, or the traffic class of an IPv6 socket.
pub(super) fn set_tos(fd: BorrowedFd<'_>, v4: bool, tos: u8) -> io::Result<()> {
    let outcome = set(fd, libc::IPPROTO_IP, libc::IP_TOS, tos.into());
    if v4 {
        return outcome;
    }
    // An IPv6 socket that carries IPv4 uses the IPv4 setting, but not every system lets it be set.
    match set_if_supported(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        outcome => outcome,
    }
}

/// Sets an option that refines how a connection works. A system that does not know the option
/// (ENOPROTOOPT), such as an older Windows, keeps its default.
pub(super) fn set_if_supported(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    match set(fd, level, name, value) {
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        outcome => outcome,
    }
}

/// Lets an IPv6 socket also reach IPv4 hosts, by their mapped addresses. Windows and FreeBSD need
/// this option for it. OpenBSD cannot do it and refuses such an address when it is used.
pub(super) fn allow_v4(fd: BorrowedFd<'_>) {
    let _ = set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0);
}

/// Makes a TCP connection reset when its socket is closed, so that no port stays in TIME_WAIT.
pub(super) fn reset_on_close(fd: BorrowedFd<'_>) -> io::Result<()> {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open while borrowed. Pointer and length describe the struct, which
    // the kernel copies.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const at_once).cast(),
            size_of_val(&at_once) as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Reads an option whose value is an int.
pub(super) fn read(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: every bit pattern is an int.
    unsafe { read_struct(fd, level, name) }
}

/// Reads an option whose value is a C struct.
///
/// # Safety
/// All bit patterns must be valid for T, and T must be the type of the option's value.
pub(super) unsafe fn read_struct<T>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    // SAFETY: all zeroes is valid for T (caller).
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open while borrowed. The kernel writes at most `length` bytes into
    // the exclusive variable.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &mut length) })?;
    Ok(value)
}
