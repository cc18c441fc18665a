//! macOS and the BSDs.

use std::ffi::c_int;

unsafe extern "C" {
    // Stays true from the start of such a program, even after it has given up its rights.
    safe fn issetugid() -> c_int;
}

pub(super) fn is_privileged() -> bool {
    issetugid() != 0
}
