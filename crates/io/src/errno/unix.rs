//! Where macOS and FreeBSD keep the error number.

/// The calling thread's error number.
pub(super) fn location() -> *mut libc::c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { libc::__error() }
}
