//! `zmq_socket_monitor*`: what happens to a socket's connections, told over another socket.

use std::ffi::{CStr, c_char, c_int, c_void};

use tautline_core::{Error, Socket, SocketType};

use crate::entry;
use crate::error::status;
use crate::guard::guard;

/// The events of version 1, as all programs before knew them.
const VERSION: c_int = 1;

/// Tells `events` to the PAIR socket that connects to `endpoint`; a null `endpoint` ends that. -1
/// with ENOTSOCK, with EPROTONOSUPPORT if the endpoint is not an inproc one, with EINVAL, with
/// ETERM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_socket_monitor(
    socket: *mut c_void,
    endpoint: *const c_char,
    events: c_int,
) -> c_int {
    let pair = c_int::from(SocketType::Pair.code());
    // A negative mask has bits that no event has, in either width.
    let events = i64::from(events).cast_unsigned();
    // SAFETY: the same contract.
    unsafe { zmq_socket_monitor_versioned(socket, endpoint, events, VERSION, pair) }
}

/// As [`zmq_socket_monitor`], with events in the form of `version` (1, 2 or 3) from a socket of
/// this type: PAIR, PUB or PUSH; EINVAL for others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_socket_monitor_versioned(
    socket: *mut c_void,
    endpoint: *const c_char,
    events: u64,
    version: c_int,
    socket_type: c_int,
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
                    let socket_type = u8::try_from(socket_type).ok().and_then(SocketType::from_code);
                    socket.monitor(endpoint, events, version, socket_type.ok_or(Error::Invalid)?)
                })
            },
        )
    })
}

/// Tells, as an event of its own for each peer, how many messages are queued to it and from it. -1
/// with EINVAL if no socket listens to that event, with EAGAIN without peers, with ENOTSOCK, with
/// ETERM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zmq_socket_monitor_pipes_stats(socket: *mut c_void) -> c_int {
    // SAFETY: the caller gives null or a handle.
    guard(-1, || status(unsafe { entry::with(socket, Socket::monitor_queues) }))
}
