//! Error numbers of Unix systems, which equal C's.

use std::ffi::CStr;

/// Converts a system number to the C number.
pub(super) fn of_system(number: i32) -> i32 {
    number
}

/// Converts a C number to the system number.
pub(super) fn to_system(number: i32) -> i32 {
    number
}

/// Returns the C library's text for a number, if it has one.
pub(super) fn describe(number: i32) -> Option<Box<CStr>> {
    let mut text = [0_u8; 256];
    // SAFETY: the buffer is exclusive and its length is given. libc binds the POSIX variant, which
    // writes a terminated text into the buffer.
    let failure = unsafe { libc::strerror_r(number, text.as_mut_ptr().cast(), text.len()) };
    if failure != 0 {
        return None;
    }
    CStr::from_bytes_until_nul(&text).ok().map(Box::from)
}
