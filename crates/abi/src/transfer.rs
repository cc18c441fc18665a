//! Sending and receiving: `zmq_send`, `zmq_recv` and the variants with constant memory, message
//! objects and vectors.
//!
//! These are the hottest functions of the library. In addition to the engine's work they check the
//! handle's address and tag, and enter the socket (see [`crate::entry`]).
//!
//! The caller passes a handle of `zmq_socket`, or null. A buffer has `len` bytes, or is null. A
//! message is 64 bytes (`zmq_msg_t`) that no other thread uses during the call, or null.

use std::ffi::{c_int, c_void};

use tautline_core::{Error, Flags, Message, SharedSocket, Socket};

use crate::entry::{self, SocketGuard};
use crate::error::{fail, size};
use crate::guard::guard;
use crate::msg;

/// Shorter constant bodies are copied like others, because a copy is cheaper than a reference.
const CONSTANT_BY_REFERENCE: usize = 4096;

/// The structure of POSIX, as in `<sys/uio.h>`.
#[repr(C)]
pub struct IoVec {
    base: *mut c_void,
    len: usize,
}

/// Applies one expression to a socket of one thread or of many.
macro_rules! on_socket {
    ($handle:expr, |$socket:ident| $body:expr) => {
        entry::transfer($handle, move |$socket| $body, move |$socket| $body)
    };
}

/// Calls `one` with the socket behind a handle, or `many` if several threads may use the socket.
/// Sends or receives one part, and returns its length for C. [`entry::transfer`] does the same for
/// other calls; here the result does not go through memory. [`zmq_send`] and [`zmq_recv`] are
/// written by hand, which saves seven instructions.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[inline(always)]
unsafe fn transfer_part(
    handle: *mut c_void,
    one: impl FnOnce(&mut Socket) -> Result<usize, Error>,
    many: impl FnOnce(&SharedSocket) -> Result<usize, Error>,
) -> c_int {
    guard(-1, move || {
        // SAFETY: guaranteed by the caller.
        let Ok(mut entry) = (unsafe { SocketGuard::new(handle) }) else {
            // SAFETY: guaranteed by the caller.
            return unsafe { transfer_part_shared(handle, many) };
        };
        let result = entry.socket().and_then(one);
        drop(entry);
        match result {
            Ok(len) => c_int::try_from(len).unwrap_or(c_int::MAX),
            Err(error) => fail(error),
        }
    })
}

/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
#[inline(never)]
unsafe fn transfer_part_shared(
    handle: *mut c_void,
    many: impl FnOnce(&SharedSocket) -> Result<usize, Error>,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    size(unsafe { entry::transfer_shared(handle, many) })
}

/// Variant of `on_socket` for [`transfer_part`].
macro_rules! transfer_part {
    ($handle:expr, |$socket:ident| $body:expr) => {
        transfer_part($handle, move |$socket| $body, move |$socket| $body)
    };
}

unsafe extern "C" {
    /// The C library's `malloc`: programs release the buffers of [`zmq_recviov`] with `free`.
    fn malloc(size: usize) -> *mut c_void;
}

/// Returns the caller's bytes. Fault for null with a length, Invalid for an impossible length.
///
/// # Safety
/// `buffer` is null or `len` readable bytes that do not change during `'a`.
#[inline(always)]
unsafe fn bytes<'a>(buffer: *const c_void, len: usize) -> Result<&'a [u8], Error> {
    if buffer.is_null() {
        return if len == 0 { Ok(&[]) } else { Err(Error::Fault) };
    }
    if isize::try_from(len).is_err() {
        return Err(Error::Invalid);
    }
    // SAFETY: not null and of a possible length; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), len) })
}

/// Returns the caller's room. Fault for null with a length.
///
/// # Safety
/// `buffer` is null or `len` writable bytes that are not used elsewhere during `'a`.
#[inline(always)]
unsafe fn bytes_mut<'a>(buffer: *mut c_void, len: usize) -> Result<&'a mut [u8], Error> {
    if buffer.is_null() && len > 0 {
        return Err(Error::Fault);
    }
    // With a length of zero, any address is valid.
    let start = if buffer.is_null() { std::ptr::dangling_mut() } else { buffer.cast() };
    // SAFETY: not null and of a possible length; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, len.min(isize::MAX as usize)) })
}

/// Sends a copy of `len` bytes. Returns `len`, or -1; for the errors see zmq_send(3).
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_send(
    socket: *mut c_void,
    buffer: *const c_void,
    len: usize,
    flags: c_int,
) -> c_int {
    guard(-1, move || {
        // SAFETY: the caller passes null or a handle.
        let Ok(mut entry) = (unsafe { SocketGuard::new(socket) }) else {
            // SAFETY: the caller passes null or a handle, and null or `len` readable bytes.
            return unsafe { send_shared(socket, buffer, len, flags) };
        };
        // SAFETY: the caller passes null or readable bytes.
        let sent =
            entry.socket().and_then(|socket| socket.send(unsafe { bytes(buffer, len) }?, Flags(flags)));
        drop(entry);
        match sent {
            Ok(()) => c_int::try_from(len).unwrap_or(c_int::MAX),
            Err(error) => fail(error),
        }
    })
}

/// [`zmq_send`] on a socket that several threads may use.
///
/// # Safety
/// `socket` is null, or points to at least four readable bytes (the tag). `buffer` is null,
/// or points to `len` readable bytes.
#[cold]
#[inline(never)]
unsafe fn send_shared(socket: *mut c_void, buffer: *const c_void, len: usize, flags: c_int) -> c_int {
    // SAFETY: the caller guarantees the handle and the bytes.
    size(unsafe {
        entry::transfer_shared(socket, |socket| socket.send(bytes(buffer, len)?, Flags(flags)).map(|()| len))
    })
}

/// Sends `len` bytes that never change. Does not copy them if that saves time.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_send_const(
    socket: *mut c_void,
    buffer: *const c_void,
    len: usize,
    flags: c_int,
) -> c_int {
    if len < CONSTANT_BY_REFERENCE {
        // SAFETY: this function requires all that zmq_send requires, and more.
        return unsafe { zmq_send(socket, buffer, len, flags) };
    }
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and null or readable bytes that never change.
        // Without a free function the engine only reads them.
        size(unsafe {
            on_socket!(socket, |socket| {
                let body = bytes(buffer, len)?;
                let data = body.as_ptr().cast_mut();
                let mut message = Message::from_foreign(data, len, None, std::ptr::null_mut());
                socket.send_message(&mut message, Flags(flags)).map(|()| len)
            })
        })
    })
}

/// Receives a message part into `len` bytes and cuts the bytes that do not fit. Returns the whole
/// length of the part, or -1; for the errors see zmq_recv(3).
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_recv(
    socket: *mut c_void,
    buffer: *mut c_void,
    len: usize,
    flags: c_int,
) -> c_int {
    guard(-1, move || {
        // SAFETY: the caller passes null or a handle.
        let Ok(mut entry) = (unsafe { SocketGuard::new(socket) }) else {
            // SAFETY: the caller passes null or a handle, and null or `len` writable bytes.
            return unsafe { recv_shared(socket, buffer, len, flags) };
        };
        // SAFETY: the caller passes null or writable bytes that are not used elsewhere during the
        // call.
        let received =
            entry.socket().and_then(|socket| socket.recv(unsafe { bytes_mut(buffer, len) }?, Flags(flags)));
        drop(entry);
        match received {
            Ok(len) => c_int::try_from(len).unwrap_or(c_int::MAX),
            Err(error) => fail(error),
        }
    })
}

/// [`zmq_recv`] on a socket that several threads may use.
///
/// # Safety
/// `socket` is null, or points to at least four readable bytes (the tag). `buffer` is null,
/// or valid for writes of `len` bytes.
#[cold]
#[inline(never)]
unsafe fn recv_shared(socket: *mut c_void, buffer: *mut c_void, len: usize, flags: c_int) -> c_int {
    // SAFETY: the caller guarantees the handle and the bytes.
    size(unsafe {
        entry::transfer_shared(socket, |socket| socket.recv(bytes_mut(buffer, len)?, Flags(flags)))
    })
}

/// Sends a message object, which is then empty. On failure it stays unchanged. Returns its length,
/// or -1; EFAULT if it is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_send(message: *mut Message, socket: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or 64 bytes that are not used elsewhere
    // during the call.
    unsafe {
        transfer_part!(socket, |socket| {
            let message = msg::at(message)?;
            let len = message.len();
            socket.send_message(message, Flags(flags)).map(|()| len)
        })
    }
}

/// Receives a message part into a message object and releases its previous content. Returns its
/// length, or -1; EFAULT if the object is not a message.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_msg_recv(message: *mut Message, socket: *mut c_void, flags: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or 64 bytes that are not used elsewhere
    // during the call.
    unsafe { transfer_part!(socket, |socket| socket.recv_message(msg::at(message)?, Flags(flags))) }
}

/// Older form of [`zmq_msg_send`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_sendmsg(socket: *mut c_void, message: *mut Message, flags: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a message.
    unsafe { zmq_msg_send(message, socket, flags) }
}

/// Older form of [`zmq_msg_recv`].
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_recvmsg(socket: *mut c_void, message: *mut Message, flags: c_int) -> c_int {
    // SAFETY: the caller passes null or a handle, and null or a message.
    unsafe { zmq_msg_recv(message, socket, flags) }
}

/// Sends each of `count` buffers as one part, the last one without ZMQ_SNDMORE. Returns the length
/// of the last part, or -1; EINVAL if there are no buffers.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_sendiov(
    socket: *mut c_void,
    vector: *mut IoVec,
    count: usize,
    flags: c_int,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and null or `count` buffers.
        size(unsafe {
            on_socket!(socket, |socket| {
                if vector.is_null() || count == 0 {
                    return Err(Error::Invalid);
                }
                let mut sent = 0;
                for index in 0..count {
                    let part = &*vector.add(index);
                    let last = index + 1 == count;
                    let flags = if last { flags & !Flags::MORE.0 } else { flags };
                    socket.send(bytes(part.base, part.len)?, Flags(flags))?;
                    sent = part.len;
                }
                Ok(sent)
            })
        })
    })
}

/// Receives up to `*count` parts of one message, each into a buffer of `malloc` that the caller
/// frees. Returns the number of parts, and stores it in `*count`. -1 with EINVAL without a vector,
/// with ENOMEM, or with the errors of zmq_recv.
#[cfg_attr(feature = "c-symbols", unsafe(no_mangle))]
pub unsafe extern "C" fn zmq_recviov(
    socket: *mut c_void,
    vector: *mut IoVec,
    count: *mut usize,
    flags: c_int,
) -> c_int {
    guard(-1, || {
        // SAFETY: the caller passes null or a handle, and for the rest null or valid room.
        size(unsafe {
            on_socket!(socket, |socket| {
                if vector.is_null() || count.is_null() || *count == 0 {
                    return Err(Error::Invalid);
                }
                let room = std::mem::take(&mut *count);
                let mut message = Message::new();
                while *count < room {
                    let len = socket.recv_message(&mut message, Flags(flags))?;
                    // For an empty part, a null pointer would look like a failure.
                    let base = malloc(len.max(1));
                    if base.is_null() {
                        return Err(Error::NoMemory);
                    }
                    std::ptr::copy_nonoverlapping(message.as_slice().as_ptr(), base.cast(), len);
                    vector.add(*count).write(IoVec { base, len });
                    *count += 1;
                    if !message.more() {
                        break;
                    }
                }
                Ok(*count)
            })
        })
    })
}
