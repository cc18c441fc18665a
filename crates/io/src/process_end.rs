//! The end of the process by exit(3), with its status.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::{libc, unload};

unsafe extern "C" {
    /// As glibc's `<stdlib.h>` declares it.
    fn on_exit(handler: extern "C" fn(libc::c_int, *mut c_void), argument: *mut c_void) -> libc::c_int;
}

/// The function to call.
static HANDLER: OnceLock<fn(i32)> = OnceLock::new();

/// Calls `f` with the exit status when the process ends by exit(3) or by the end of `main`. A
/// signal and _exit(2) do not call it. Only the first `f` is called; a forked child inherits it.
/// The library that contains this code then stays in the process.
pub fn call_at_exit(f: fn(i32)) {
    if HANDLER.set(f).is_ok() {
        unload::prevent();
        // SAFETY: the handler is a function of this library, which is never unloaded, and takes no
        // argument.
        unsafe { on_exit(call, std::ptr::null_mut()) };
    }
}

extern "C" fn call(status: libc::c_int, _: *mut c_void) {
    if let Some(handler) = HANDLER.get() {
        handler(status);
    }
}
