//! Groups of a DISH, and single peers of SERVER, PEER and ROUTER: `zmq_join`, `zmq_leave`,
//! `zmq_connect_peer`, `zmq_disconnect_peer`, `zmq_socket_get_peer_state`.
//!
//! The caller passes a handle of `zmq_socket`, or null. Groups and endpoints are texts with a NUL
//! at the end, or null. A routing id has `size` bytes, or is null.

use std::ffi::{CStr, c_char, c_int, c_void};

use tautline_core::{Error, Socket};

use crate::entry;
use crate::error::{fail, status};
use crate::guard::guard;

/// Joins a group, to receive its messages from now on. -1 with EINVAL if the name is too long or
/// already joined, with ENOTSUP if the socket is not a DISH, with ENOTSOCK, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_join(socket: *mut c_void, group: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe { with_group(socket, group, Socket::join) }
}

/// Leaves a group. -1 with EINVAL if the group was not joined; the other errors are those of
/// [`zmq_join`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_leave(socket: *mut c_void, group: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe { with_group(socket, group, Socket::leave) }
}

/// # Safety
/// `socket` is null or a handle, `group` null or a terminated string.
unsafe fn with_group(
    socket: *mut c_void,
    group: *const c_char,
    call: fn(&mut Socket, &[u8]) -> Result<(), Error>,
) -> c_int {
    guard(-1, || {
        // SAFETY: guaranteed by the caller.
        status(unsafe {
            entry::with(socket, |socket| {
                if group.is_null() {
                    return Err(Error::Invalid);
                }
                call(socket, CStr::from_ptr(group).to_bytes())
            })
        })
    })
}

/// Connects a PEER and returns the routing id of the peer at `endpoint`. 0 with ENOTSUP for other
/// types, with EFAULT under ZMQ_IMMEDIATE, or with the errors of zmq_connect.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_connect_peer(socket: *mut c_void, endpoint: *const c_char) -> u32 {
    guard(0, || {
        // SAFETY: the caller passes null or a handle, and null or a string.
        let connected = unsafe {
            entry::with(socket, |socket| {
                if endpoint.is_null() {
                    return Err(Error::Invalid);
                }
                socket.connect_peer(CStr::from_ptr(endpoint).to_str().map_err(|_| Error::Invalid)?)
            })
        };
        connected.unwrap_or_else(|error| {
            fail(error);
            0
        })
    })
}

/// Closes the connection to one peer of a SERVER or PEER. -1 with EHOSTUNREACH if the peer is
/// unknown, with ENOTSUP for other types, with ENOTSOCK, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_disconnect_peer(socket: *mut c_void, routing_id: u32) -> c_int {
    // SAFETY: the caller passes null or a handle.
    guard(-1, || status(unsafe { entry::with(socket, |socket| socket.disconnect_peer(routing_id)) }))
}

/// Returns the possible operations with one peer of a ROUTER: ZMQ_POLLIN, ZMQ_POLLOUT. -1 with
/// EHOSTUNREACH if the peer is unknown, with ENOTSUP for other types, with EINVAL without a routing
/// id, with ENOTSOCK, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_socket_get_peer_state(
    socket: *mut c_void,
    routing_id: *const c_void,
    size: usize,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and null or `size` readable bytes.
        let state = unsafe {
            entry::with(socket, |socket| {
                if routing_id.is_null() || isize::try_from(size).is_err() {
                    return Err(Error::Invalid);
                }
                socket.peer_state(std::slice::from_raw_parts(routing_id.cast(), size))
            })
        };
        state.unwrap_or_else(fail)
    })
}
