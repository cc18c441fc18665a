//! Location of the error number in glibc and musl.

/// Returns the location of the calling thread's error number.
pub(super) fn location() -> *mut libc::c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { libc::__errno_location() }
}
