//! Error numbers of Windows. The system's own numbers, which its calls return and `std::io::Error`
//! holds, differ from C's. The C library has texts only for the oldest C numbers.

use std::ffi::{CStr, CString};

use windows_sys::Win32::Foundation as win;
use windows_sys::Win32::Networking::WinSock as ws;

use crate::libc as system;
use crate::windows::crt as c;

/// Returns the location of the calling thread's error number.
pub(super) fn location() -> *mut std::ffi::c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { c::_errno() }
}

/// Pairs of a system number and its C number. If several system numbers map to one C number, the
/// first is used for the reverse direction.
const NUMBERS: [(i32, i32); 56] = [
    (system::EACCES, c::EACCES),
    (win::ERROR_ACCESS_DENIED as i32, c::EACCES),
    (win::ERROR_SHARING_VIOLATION as i32, c::EACCES),
    (system::EADDRINUSE, c::EADDRINUSE),
    (ws::WSAEADDRNOTAVAIL, c::EADDRNOTAVAIL),
    (system::EAFNOSUPPORT, c::EAFNOSUPPORT),
    (ws::WSAEPFNOSUPPORT, c::EAFNOSUPPORT),
    (ws::WSAEALREADY, c::EALREADY),
    (system::EBADF, c::EBADF),
    (win::ERROR_INVALID_HANDLE as i32, c::EBADF),
    (win::ERROR_BUSY as i32, c::EBUSY),
    (system::ECONNABORTED, c::ECONNABORTED),
    (win::ERROR_CONNECTION_ABORTED as i32, c::ECONNABORTED),
    (ws::WSAECONNREFUSED, c::ECONNREFUSED),
    (win::ERROR_CONNECTION_REFUSED as i32, c::ECONNREFUSED),
    (ws::WSAECONNRESET, c::ECONNRESET),
    (win::ERROR_NETNAME_DELETED as i32, c::ECONNRESET),
    (system::EEXIST, c::EEXIST),
    (win::ERROR_FILE_EXISTS as i32, c::EEXIST),
    (ws::WSAEFAULT, c::EFAULT),
    (system::EHOSTUNREACH, c::EHOSTUNREACH),
    (system::EHOSTDOWN, c::EHOSTUNREACH),
    (win::ERROR_HOST_UNREACHABLE as i32, c::EHOSTUNREACH),
    (system::EINPROGRESS, c::EINPROGRESS),
    (system::EINTR, c::EINTR),
    (system::EINVAL, c::EINVAL),
    (win::ERROR_INVALID_PARAMETER as i32, c::EINVAL),
    (win::ERROR_IO_DEVICE as i32, c::EIO),
    (system::EMFILE, c::EMFILE),
    (system::ENFILE, c::ENFILE),
    (ws::WSAEMSGSIZE, c::EMSGSIZE),
    (system::ENAMETOOLONG, c::ENAMETOOLONG),
    (win::ERROR_FILENAME_EXCED_RANGE as i32, c::ENAMETOOLONG),
    (system::ENETDOWN, c::ENETDOWN),
    (ws::WSAENETRESET, c::ENETRESET),
    (system::ENETUNREACH, c::ENETUNREACH),
    (win::ERROR_NETWORK_UNREACHABLE as i32, c::ENETUNREACH),
    (system::ENOBUFS, c::ENOBUFS),
    (system::ENODEV, c::ENODEV),
    (system::ENOENT, c::ENOENT),
    (win::ERROR_PATH_NOT_FOUND as i32, c::ENOENT),
    (system::ENOMEM, c::ENOMEM),
    (win::ERROR_OUTOFMEMORY as i32, c::ENOMEM),
    (win::ERROR_COMMITMENT_LIMIT as i32, c::ENOMEM),
    (system::ENOPROTOOPT, c::ENOPROTOOPT),
    (system::ENOSYS, c::ENOSYS),
    (system::ENOTCONN, c::ENOTCONN),
    (ws::WSAENOTSOCK, c::ENOTSOCK),
    (system::ENOTSUP, c::ENOTSUP),
    (system::EPERM, c::EPERM),
    (ws::WSAESHUTDOWN, c::EPIPE),
    (win::ERROR_BROKEN_PIPE as i32, c::EPIPE),
    (ws::WSAEPROTONOSUPPORT, c::EPROTONOSUPPORT),
    (ws::WSAETIMEDOUT, c::ETIMEDOUT),
    (win::ERROR_SEM_TIMEOUT as i32, c::ETIMEDOUT),
    (system::EAGAIN, c::EAGAIN),
];

/// Converts a system number to the C number. A number without a C name becomes EIO.
pub(super) fn of_system(number: i32) -> i32 {
    NUMBERS.iter().find(|(system, _)| *system == number).map_or(c::EIO, |&(_, c)| c)
}

/// Converts a C number to the system number.
pub(super) fn to_system(number: i32) -> i32 {
    NUMBERS.iter().find(|(_, c)| *c == number).map_or(NO_SUCH, |&(system, _)| system)
}

/// System number for a C number that the system does not have.
const NO_SUCH: i32 = win::ERROR_INVALID_FUNCTION as i32;

/// Returns the C library's text for a number, or our own text for the numbers that C got last,
/// which the library does not describe.
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
