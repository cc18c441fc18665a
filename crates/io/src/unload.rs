//! The end of this code, by dlclose(3).

use std::ffi::c_void;

use crate::libc;

/// Keeps the library that contains this code in the process, also after dlclose(3). Has no effect
/// for a program that contains the code itself.
pub(crate) fn prevent() {
    // SAFETY: a struct of pointers and integers, for which all zeroes are valid.
    let mut library: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address of a function, and a variable for the answer.
    let found = unsafe { libc::dladdr(prevent as *const c_void, &mut library) };
    if found != 0 && !library.dli_fname.is_null() {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name of a library that is loaded, so none of its code runs.
        unsafe { libc::dlopen(library.dli_fname, flags) };
    }
}
