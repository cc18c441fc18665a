//! Environment variables, ignored in programs that have more rights than their caller.
//!
//! A program that is set-user-ID, set-group-ID or has file capabilities has rights that its caller
//! lacks. The caller must not choose the files that it reads and writes. Such a program therefore
//! sees no variables through this module.

use std::ffi::OsString;

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "env/linux.rs")]
#[cfg_attr(all(unix, not(any(target_os = "linux", target_os = "android"))), path = "env/unix.rs")]
#[cfg_attr(windows, path = "env/windows.rs")]
mod os;

/// Returns the value of a variable, or `None` if it is not set or must be ignored.
pub fn var_os(name: &str) -> Option<OsString> {
    if is_trusted() { std::env::var_os(name) } else { None }
}

/// True if the process has no more rights than its caller, so that variables may be used.
pub fn is_trusted() -> bool {
    !os::is_privileged()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_usual_program_count() {
        assert!(is_trusted());
        assert_eq!(var_os("PATH"), std::env::var_os("PATH"));
        assert_eq!(var_os("TAUTLINE_WHICH_IS_NOT_SET"), None);
    }
}
