//! `zmq_proxy`, `zmq_proxy_steerable` and `zmq_device`: the calling thread connects two sockets.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use tautline_core::{Error, Socket, proxy};

use crate::entry;
use crate::error::status;
use crate::guard::guard;

/// Forwards messages between `frontend` and `backend` until the context is terminated, and copies
/// them to `capture` unless that is null. Returns -1 with ETERM. EFAULT without frontend or
/// backend, ENOTSOCK if one of them is not a socket, EINVAL if `capture` is one of the other two.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_proxy(
    frontend: *mut c_void,
    backend: *mut c_void,
    capture: *mut c_void,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { zmq_proxy_steerable(frontend, backend, capture, null_mut()) }
}

/// Forwards messages as [`zmq_proxy`] does, and obeys the commands PAUSE, RESUME, TERMINATE and
/// STATISTICS from `control`, unless that is null. Returns 0 after TERMINATE.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_proxy_steerable(
    frontend: *mut c_void,
    backend: *mut c_void,
    capture: *mut c_void,
    control: *mut c_void,
) -> c_int {
    guard(-1, || {
        if frontend.is_null() || backend.is_null() {
            return status(Err(Error::Fault));
        }
        let both = [frontend, backend];
        if (!capture.is_null() && (both.contains(&capture) || capture == control))
            || (!control.is_null() && both.contains(&control))
        {
            return status(Err(Error::Invalid));
        }
        // One socket may be both ends. It is then entered once.
        let backend = if backend == frontend { null_mut() } else { backend };
        // SAFETY: the caller passes null or handles; no two of these are the same.
        status(unsafe { run(frontend, backend, capture, control) })
    })
}

/// # Safety
/// Each is null, or points to four readable bytes.
unsafe fn run(
    frontend: *mut c_void,
    backend: *mut c_void,
    capture: *mut c_void,
    control: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        entry::with(frontend, |frontend| {
            optional(backend, |backend| {
                optional(capture, |capture| {
                    optional(control, |control| proxy::run(frontend, backend, capture, control))
                })
            })
        })
    }
}

/// # Safety
/// `handle` is null, or points to four readable bytes.
unsafe fn optional(
    handle: *mut c_void,
    call: impl FnOnce(Option<&mut Socket>) -> Result<(), Error>,
) -> Result<(), Error> {
    if handle.is_null() {
        return call(None);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { entry::with(handle, |socket| call(Some(socket))) }
}

/// Older form of [`zmq_proxy`] without capture. The type is ignored.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_device(_device: c_int, frontend: *mut c_void, backend: *mut c_void) -> c_int {
    // SAFETY: the same contract.
    unsafe { zmq_proxy(frontend, backend, null_mut()) }
}
