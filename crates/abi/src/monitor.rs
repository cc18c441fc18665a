//! `zmq_socket_monitor*`: reports the events of a socket's connections on another socket.
//!
//! The caller passes a handle of `zmq_socket`, or null, and a text with a NUL at the end, or null.

use std::ffi::{CStr, c_char, c_int, c_void};

use tautline_core::{Error, Socket, SocketType};

use crate::entry;
use crate::error::status;
use crate::guard::guard;

/// Version of the event format that all older programs know.
const VERSION: c_int = 1;

/// Sends `events` to the PAIR socket that connects to `endpoint`. A null `endpoint` stops the
/// monitor. -1 with ENOTSOCK, with EPROTONOSUPPORT if the endpoint is not an inproc one, with
/// EINVAL, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_socket_monitor(
    socket: *mut c_void,
    endpoint: *const c_char,
    events: c_int,
) -> c_int {
    let pair = c_int::from(SocketType::Pair.code());
    // A negative mask sets bits that no event has, in either width.
    let events = i64::from(events).cast_unsigned();
    // SAFETY: the caller passes null or a handle, and null or a terminated string.
    unsafe { zmq_socket_monitor_versioned(socket, endpoint, events, VERSION, pair) }
}

/// Starts a monitor as [`zmq_socket_monitor`] does, with events in the format of `version` (1, 2 or
/// 3) and a monitor socket of this type: PAIR, PUB or PUSH; EINVAL for other types.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_socket_monitor_versioned(
    socket: *mut c_void,
    endpoint: *const c_char,
    events: u64,
    version: c_int,
    socket_type: c_int,
) -> c_int {
    guard(-1, || {
        status(
            // SAFETY: the caller passes null or a handle, and null or a terminated string.
            unsafe {
                entry::with(socket, |socket| {
                    let endpoint = if endpoint.is_null() {
                        None
                    } else {
                        Some(CStr::from_ptr(endpoint).to_str().map_err(|_| Error::Invalid)?)
                    };
                    let socket_type = u8::try_from(socket_type).ok().and_then(SocketType::from_code);
                    socket.monitor(endpoint, events, version, socket_type.ok_or(Error::Invalid)?)
                })
            },
        )
    })
}

/// Reports the number of messages queued to each peer and from it, in one event per peer. -1 with
/// EINVAL if no socket listens to that event, with EAGAIN without peers, with ENOTSOCK, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_socket_monitor_pipes_stats(socket: *mut c_void) -> c_int {
    // SAFETY: the caller passes null or a handle.
    guard(-1, || status(unsafe { entry::with(socket, Socket::monitor_queues) }))
}
