//! Error numbers of Unix systems, which are C's.

use std::ffi::CStr;

/// The C number of a number of the system's.
pub(super) fn of_system(number: i32) -> i32 {
    number
}

/// The reverse.
pub(super) fn to_system(number: i32) -> i32 {
    number
}

/// The C library's text for a number, if it has one.
pub(super) fn describe(number: i32) -> Option<Box<CStr>> {
    let mut text = [0_u8; 256];
    // SAFETY: the buffer is exclusive and its length is given. libc binds the POSIX variant, which
    // writes a terminated text into it.
    let failure = unsafe { libc::strerror_r(number, text.as_mut_ptr().cast(), text.len()) };
    if failure != 0 {
        return None;
    }
    CStr::from_bytes_until_nul(&text).ok().map(Box::from)
}
