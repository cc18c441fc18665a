//! Location of the error number on macOS, the BSDs and Android.

#[cfg(any(apple, target_os = "freebsd"))]
use crate::libc::__error as errno_location;
#[cfg(any(target_os = "netbsd", target_os = "openbsd", target_os = "android"))]
use libc::__errno as errno_location;
#[cfg(target_os = "dragonfly")]
use libc::__errno_location as errno_location;

/// Returns the location of the calling thread's error number.
pub(super) fn location() -> *mut libc::c_int {
    // SAFETY: no arguments and no preconditions.
    unsafe { errno_location() }
}
