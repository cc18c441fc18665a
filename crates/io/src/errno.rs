//! The C error number of the calling thread, and the system's text for an error number. Used by the
//! code that answers C callers. The native numbers are re-exported so that no other crate needs the
//! C library for them.

use std::ffi::CStr;
use std::io;
use std::sync::OnceLock;

#[cfg(windows)]
use crate::windows::crt as libc;

pub use libc::{
    EACCES, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EBADF, EBUSY, ECONNABORTED, ECONNREFUSED,
    ECONNRESET, EEXIST, EFAULT, EHOSTUNREACH, EINPROGRESS, EINTR, EINVAL, EIO, EMFILE, EMSGSIZE,
    ENAMETOOLONG, ENETDOWN, ENETRESET, ENETUNREACH, ENFILE, ENOBUFS, ENODEV, ENOENT, ENOMEM, ENOPROTOOPT,
    ENOTCONN, ENOTSOCK, ENOTSUP, EPERM, EPIPE, EPROTO, EPROTONOSUPPORT, ETIMEDOUT, EWOULDBLOCK,
};

#[cfg_attr(all(linux_kernel, not(target_os = "android")), path = "errno/linux.rs")]
#[cfg_attr(all(unix, not(all(linux_kernel, not(target_os = "android")))), path = "errno/unix.rs")]
#[cfg_attr(windows, path = "errno/windows.rs")]
mod os;

#[cfg(windows)]
use os as common;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
use posix as common;

/// Returns the C error number of a failure, or `None` if the failure does not come from the system.
pub fn of(error: &io::Error) -> Option<i32> {
    error.raw_os_error().map(common::of_system)
}

/// Returns the failure with this C error number.
pub fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(common::to_system(number))
}

/// Sets the calling thread's C `errno`.
pub fn set(number: i32) {
    // SAFETY: the C library returns a valid pointer to the calling thread's own error number.
    unsafe { *os::location() = number }
}

/// Returns the calling thread's C `errno`.
pub fn last() -> i32 {
    // SAFETY: the C library returns a valid pointer to the calling thread's own error number.
    unsafe { *os::location() }
}

/// Returns the system's text for an error number, or `None` if the system has no such error. The
/// text lives as long as the process, as C callers expect. `errno` stays unchanged.
pub fn message(number: i32) -> Option<&'static CStr> {
    let slot = MESSAGES.get(usize::try_from(number).ok()?)?;
    slot.get_or_init(|| {
        let before = last();
        let text = common::describe(number);
        set(before);
        text
    })
    .as_deref()
}

/// Texts copied out of the C library once, because its own buffer may change while another thread
/// reads it.
static MESSAGES: [OnceLock<Option<Box<CStr>>>; 256] = [const { OnceLock::new() }; 256];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_is_read_back_in_the_same_thread_only() {
        set(EAGAIN);
        std::thread::spawn(|| set(EINVAL)).join().unwrap();
        assert_eq!(last(), EAGAIN);
        set(0);
        assert_eq!(last(), 0);
    }

    #[test]
    fn messages_are_stable_and_unknown_numbers_have_none() {
        set(EPIPE);
        let text = message(EINVAL).unwrap();
        assert!(!text.is_empty());
        assert_eq!(text.as_ptr(), message(EINVAL).unwrap().as_ptr());
        assert_eq!(message(-1), None);
        // musl has a text for every unknown number.
        assert!(message(255).is_none() || cfg!(target_env = "musl"));
        assert_eq!(message(i32::MAX), None);
        assert_eq!(last(), EPIPE);
    }
}
