//! `zmq_proxy`, `zmq_proxy_steerable` and `zmq_device`: forward messages between two sockets,
//! in the calling thread.
//!
//! The caller passes a handle of `zmq_socket`, or null, for each socket.

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
    // SAFETY: the caller passes a handle or null for each socket.
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
        // Frontend and backend may be the same socket. Pass it only once: a second `entry::with`
        // would wait for the first. A null backend means the frontend.
        let backend = if backend == frontend { null_mut() } else { backend };
        // SAFETY: the caller passes null or handles; no two of these are the same.
        status(unsafe { run(frontend, backend, capture, control) })
    })
}

/// Runs the proxy. A null `backend` means the frontend.
///
/// # Safety
/// Each handle is null, or points to at least four readable bytes (the tag). No two of them are
/// the same socket.
unsafe fn run(
    frontend: *mut c_void,
    backend: *mut c_void,
    capture: *mut c_void,
    control: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        entry::with(frontend, |frontend| {
            with_optional(backend, |backend| {
                with_optional(capture, |capture| {
                    with_optional(control, |control| proxy::run(frontend, backend, capture, control))
                })
            })
        })
    }
}

/// Calls `call` with the socket behind a handle, or with `None` for a null handle.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
unsafe fn with_optional(
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
    // SAFETY: the caller passes a handle or null for each socket.
    unsafe { zmq_proxy(frontend, backend, null_mut()) }
}
