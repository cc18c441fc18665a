//! `zmq_socket`, `zmq_close`, options and endpoints of a socket.
//!
//! The caller passes a handle of `zmq_socket`, or null; `zmq_socket` itself takes a handle of
//! `zmq_ctx_new`, or null. An option's value has `size` bytes, or is null. Endpoints are texts with
//! a NUL at the end, or null.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use tautline_core::{Error, SharedSocket, Socket, SocketType};

use crate::context;
use crate::entry;
use crate::error::{fail, status};
use crate::guard::guard;
use crate::inherited;
use crate::shared;

/// Makes a socket, to be released with [`zmq_close`]. Null with EFAULT if there is no context, with
/// EINVAL if the type is unknown, with EMFILE if there are too many sockets, with ETERM if the
/// context is being terminated.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_socket(context: *mut c_void, socket_type: c_int) -> *mut c_void {
    guard(null_mut(), || {
        let socket_type = u8::try_from(socket_type).ok().and_then(SocketType::from_code);
        // SAFETY: the caller passes null or a handle.
        let opened = unsafe { context::socket(context, socket_type) }.and_then(|socket| {
            if socket.is_thread_safe() { shared::open(socket) } else { Ok(entry::open(socket)) }
        });
        match opened {
            Ok(handle) => handle,
            Err(error) => {
                fail(error);
                null_mut()
            }
        }
    })
}

/// Closes a socket. Its unsent messages are sent in the background for up to ZMQ_LINGER. A call of
/// another thread on the socket ends with ENOTSOCK. -1 with ENOTSOCK if it is not a socket, or
/// already closed.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_close(socket: *mut c_void) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle.
        status(unsafe { entry::close(socket) })
    })
}

/// Sets an option. -1 with ENOTSOCK, with EINVAL if option, size or value are wrong, with ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_setsockopt(
    socket: *mut c_void,
    option: c_int,
    value: *const c_void,
    size: usize,
) -> c_int {
    guard(-1, || {
        status(
            // SAFETY: the caller passes null or a handle, and null or `size` readable bytes.
            unsafe {
                entry::with(socket, |socket| match (value.is_null(), size) {
                    (true, 0) => socket.set_option_null(option),
                    (false, 0..=MAX_SIZE) => {
                        socket.set_option(option, std::slice::from_raw_parts(value.cast(), size))
                    }
                    _ => Err(Error::Invalid),
                })
                .or_else(|error| match error {
                    Error::Interrupted
                        if option == inherited::LINGER && inherited::socket_type(socket).is_some() =>
                    {
                        Ok(())
                    }
                    error => Err(error),
                })
            },
        )
    })
}

/// Reads an option into `value`, which has room for `*size` bytes. Sets `*size` to the length of
/// the value. Clears the unused room, for programs that read a larger number. -1 with ENOTSOCK,
/// with EINVAL if the option is unknown or the room too small, with EFAULT without room, with
/// ETERM.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_getsockopt(
    socket: *mut c_void,
    option: c_int,
    value: *mut c_void,
    size: *mut usize,
) -> c_int {
    guard(-1, || {
        status(
            // SAFETY: the caller passes null or a handle, and for the rest null or valid room.
            unsafe {
                entry::with(socket, |socket| {
                    if value.is_null() || size.is_null() {
                        return Err(Error::Fault);
                    }
                    let room = std::slice::from_raw_parts_mut(value.cast(), (*size).min(MAX_SIZE));
                    let len = socket.option(option, room)?;
                    if let Some(rest) = room.get_mut(len..) {
                        rest.fill(0);
                    }
                    *size = len;
                    Ok(())
                })
                .or_else(|error| match inherited::socket_type(socket) {
                    Some(socket_type) if error == Error::Interrupted && option == inherited::TYPE => {
                        let place = value.cast::<c_int>().as_mut().filter(|_| !size.is_null() && *size == 4);
                        *place.ok_or(Error::Invalid)? = socket_type.code().into();
                        Ok(())
                    }
                    _ => Err(error),
                })
            },
        )
    })
}

/// Maximum size of an object in memory.
const MAX_SIZE: usize = isize::MAX as usize;

/// Calls `one` or `many` with a socket and an endpoint string.
///
/// # Safety
/// `socket` is null or a handle, `endpoint` null or a terminated string.
unsafe fn with_endpoint(
    socket: *mut c_void,
    endpoint: *const c_char,
    one: impl FnOnce(&mut Socket, &str) -> Result<(), Error>,
    many: impl FnOnce(&SharedSocket, &str) -> Result<(), Error>,
) -> c_int {
    let text = || {
        if endpoint.is_null() {
            return Err(Error::Invalid);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { CStr::from_ptr(endpoint) }.to_str().map_err(|_| Error::Invalid)
    };
    guard(-1, || {
        status(
            // SAFETY: guaranteed by the caller.
            unsafe { entry::transfer(socket, |socket| one(socket, text()?), |socket| many(socket, text()?)) },
        )
    })
}

/// Accepts connections at an endpoint. For the errors see zmq_bind(3).
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_bind(socket: *mut c_void, endpoint: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe { with_endpoint(socket, endpoint, Socket::bind, SharedSocket::bind) }
}

/// Connects to an endpoint now, and reconnects whenever the connection is lost. For the errors see
/// zmq_connect(3).
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_connect(socket: *mut c_void, endpoint: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe {
        with_endpoint(socket, endpoint, Socket::connect, |shared, endpoint| {
            shared.with(|socket| socket.connect(endpoint))
        })
    }
}

/// Stops accepting connections at an endpoint. -1 with ENOENT if the socket is not bound to it.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_unbind(socket: *mut c_void, endpoint: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe { with_endpoint(socket, endpoint, Socket::unbind, SharedSocket::unbind) }
}

/// Closes the connection to an endpoint. -1 with ENOENT if the endpoint is not connected.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_disconnect(socket: *mut c_void, endpoint: *const c_char) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a string.
    unsafe { with_endpoint(socket, endpoint, Socket::disconnect, SharedSocket::unbind) }
}
