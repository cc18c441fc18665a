//! `zmq_socket_monitor`: what happens to a socket's connections, told over a PAIR socket.

use std::ffi::{CStr, c_char, c_int, c_void};

use tautline_core::Error;

use crate::entry;
use crate::error::status;
use crate::guard::guard;

/// Tells `events` to whoever connects to `endpoint` with a PAIR socket; a null `endpoint` ends that. -1 with
/// ENOTSOCK, with EPROTONOSUPPORT if the endpoint is not an inproc one, with EINVAL, with ETERM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_socket_monitor(
    socket: *mut c_void,
    endpoint: *const c_char,
    events: c_int,
) -> c_int {
    guard(-1, || {
        status(
            // SAFETY: the caller gives null or a handle, and null or a terminated string.
            unsafe {
                entry::with(socket, |socket| {
                    let endpoint = if endpoint.is_null() {
                        None
                    } else {
                        Some(CStr::from_ptr(endpoint).to_str().map_err(|_| Error::Invalid)?)
                    };
                    socket.monitor(endpoint, events)
                })
            },
        )
    })
}
