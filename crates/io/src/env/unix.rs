//! macOS and the BSDs.

use std::ffi::c_int;

unsafe extern "C" {
    // True from the start of such a program on, also after it has given its rights up.
    safe fn issetugid() -> c_int;
}

pub(super) fn is_privileged() -> bool {
    issetugid() != 0
}
