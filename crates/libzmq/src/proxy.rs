//! `zmq_proxy`, `zmq_proxy_steerable` and `zmq_device`: two sockets joined by the calling thread.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use tautline_core::{Error, Socket, proxy};

use crate::entry::Entry;
use crate::error::status;
use crate::guard::guard;

/// Forwards messages between `frontend` and `backend`, and copies to `capture` unless that is null, until the context
/// is ended: -1 with ETERM. EFAULT without frontend or backend, ENOTSOCK for what is no socket, EINVAL if `capture` is
/// one of the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_proxy(
    frontend: *mut c_void,
    backend: *mut c_void,
    capture: *mut c_void,
) -> c_int {
    // SAFETY: the same contract.
    unsafe { zmq_proxy_steerable(frontend, backend, capture, null_mut()) }
}

/// [`zmq_proxy`] that obeys the commands PAUSE, RESUME, TERMINATE and STATISTICS from `control`, unless that is null;
/// 0 after TERMINATE.
#[unsafe(no_mangle)]
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
        // One socket may be both ends: then it is entered once.
        let backend = if backend == frontend { null_mut() } else { backend };
        // SAFETY: the caller gives null or handles; no two of these are the same.
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
    // SAFETY: the caller's word.
    let (mut frontend, mut backend, mut capture, mut control) =
        unsafe { (Entry::new(frontend)?, optional(backend)?, optional(capture)?, optional(control)?) };
    proxy::run(frontend.socket()?, socket(&mut backend)?, socket(&mut capture)?, socket(&mut control)?)
}

/// # Safety
/// `handle` is null, or points to four readable bytes.
unsafe fn optional(handle: *mut c_void) -> Result<Option<Entry>, Error> {
    // SAFETY: the caller's word.
    if handle.is_null() { Ok(None) } else { unsafe { Entry::new(handle) }.map(Some) }
}

fn socket(entry: &mut Option<Entry>) -> Result<Option<&mut Socket>, Error> {
    entry.as_mut().map(Entry::socket).transpose()
}

/// [`zmq_proxy`] without capture, older. The type makes no difference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_device(_device: c_int, frontend: *mut c_void, backend: *mut c_void) -> c_int {
    // SAFETY: the same contract.
    unsafe { zmq_proxy(frontend, backend, null_mut()) }
}
