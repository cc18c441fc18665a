//! Error numbers of Windows. Its own, which its calls tell and `std::io::Error` holds, are none of C's; and the C library has texts for no
//! more than C's first ones.

use std::ffi::{CStr, CString};

use crate::libc as system;
use crate::windows::crt as c;

/// The calling thread's error number.
pub(super) fn location() -> *mut std::ffi::c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { c::_errno() }
}

/// Numbers of the system's beside C's. Of several for one of C's, the first is what it becomes.
const NUMBERS: [(i32, i32); 56] = [
    (system::EACCES, c::EACCES),
    (5, c::EACCES),
    (32, c::EACCES),
    (system::EADDRINUSE, c::EADDRINUSE),
    (10049, c::EADDRNOTAVAIL),
    (system::EAFNOSUPPORT, c::EAFNOSUPPORT),
    (10046, c::EAFNOSUPPORT),
    (10037, c::EALREADY),
    (system::EBADF, c::EBADF),
    (6, c::EBADF),
    (170, c::EBUSY),
    (system::ECONNABORTED, c::ECONNABORTED),
    (1236, c::ECONNABORTED),
    (10061, c::ECONNREFUSED),
    (1225, c::ECONNREFUSED),
    (10054, c::ECONNRESET),
    (64, c::ECONNRESET),
    (system::EEXIST, c::EEXIST),
    (80, c::EEXIST),
    (10014, c::EFAULT),
    (system::EHOSTUNREACH, c::EHOSTUNREACH),
    (system::EHOSTDOWN, c::EHOSTUNREACH),
    (1232, c::EHOSTUNREACH),
    (system::EINPROGRESS, c::EINPROGRESS),
    (system::EINTR, c::EINTR),
    (system::EINVAL, c::EINVAL),
    (87, c::EINVAL),
    (1117, c::EIO),
    (system::EMFILE, c::EMFILE),
    (system::ENFILE, c::ENFILE),
    (10040, c::EMSGSIZE),
    (system::ENAMETOOLONG, c::ENAMETOOLONG),
    (206, c::ENAMETOOLONG),
    (system::ENETDOWN, c::ENETDOWN),
    (10052, c::ENETRESET),
    (system::ENETUNREACH, c::ENETUNREACH),
    (1231, c::ENETUNREACH),
    (system::ENOBUFS, c::ENOBUFS),
    (system::ENODEV, c::ENODEV),
    (system::ENOENT, c::ENOENT),
    (3, c::ENOENT),
    (system::ENOMEM, c::ENOMEM),
    (14, c::ENOMEM),
    (1455, c::ENOMEM),
    (system::ENOPROTOOPT, c::ENOPROTOOPT),
    (system::ENOSYS, c::ENOSYS),
    (system::ENOTCONN, c::ENOTCONN),
    (10038, c::ENOTSOCK),
    (system::ENOTSUP, c::ENOTSUP),
    (system::EPERM, c::EPERM),
    (10058, c::EPIPE),
    (109, c::EPIPE),
    (10043, c::EPROTONOSUPPORT),
    (10060, c::ETIMEDOUT),
    (121, c::ETIMEDOUT),
    (system::EAGAIN, c::EAGAIN),
];

/// The C number of a number of the system's. What C has no name for is an error of input and output.
pub(super) fn of_system(number: i32) -> i32 {
    NUMBERS.iter().find(|(system, _)| *system == number).map_or(c::EIO, |&(_, c)| c)
}

/// The reverse.
pub(super) fn to_system(number: i32) -> i32 {
    NUMBERS.iter().find(|(_, c)| *c == number).map_or(NO_SUCH, |&(system, _)| system)
}

/// ERROR_INVALID_FUNCTION: what C names and the system has no number for.
const NO_SUCH: i32 = 1;

/// The C library's text for a number, if it has one, or ours: it has none for those that it got last.
pub(super) fn describe(number: i32) -> Option<Box<CStr>> {
    if let Some((_, text)) = LATE.iter().find(|(late, _)| *late == number) {
        return CString::new(*text).ok().map(CString::into_boxed_c_str);
    }
    if !(0..=c::EILSEQ).contains(&number) {
        return None;
    }
    // SAFETY: the C library returns a terminated text, which it keeps for the thread.
    let text = unsafe { CStr::from_ptr(c::strerror(number)) };
    (text != c"Unknown error").then(|| text.into())
}

const LATE: [(i32, &str); 20] = [
    (c::EADDRINUSE, "Address in use"),
    (c::EADDRNOTAVAIL, "Address not available"),
    (c::EAFNOSUPPORT, "Address family not supported"),
    (c::ECONNABORTED, "Connection aborted"),
    (c::ECONNREFUSED, "Connection refused"),
    (c::ECONNRESET, "Connection reset"),
    (c::EHOSTUNREACH, "Host unreachable"),
    (c::EINPROGRESS, "Operation in progress"),
    (c::EMSGSIZE, "Message too long"),
    (c::ENETDOWN, "Network is down"),
    (c::ENETRESET, "Network reset"),
    (c::ENETUNREACH, "Network unreachable"),
    (c::ENOBUFS, "No buffer space"),
    (c::ENOPROTOOPT, "Option not available"),
    (c::ENOTCONN, "Not connected"),
    (c::ENOTSOCK, "Not a socket"),
    (c::ENOTSUP, "Not supported"),
    (c::EPROTO, "Protocol error"),
    (c::EPROTONOSUPPORT, "Protocol not supported"),
    (c::ETIMEDOUT, "Timed out"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_cs_and_come_back() {
        for (number, c) in NUMBERS {
            assert_eq!(of_system(number), c);
            assert_eq!(of_system(to_system(c)), c);
        }
        assert_eq!(of_system(12345), c::EIO);
        assert!(LATE.iter().all(|(number, _)| describe(*number).is_some()));
    }
}
