//! Sockets and contexts of the parent in a forked child.
//!
//! The descriptors and connections of inherited objects belong to the parent, and the I/O threads
//! do not exist in the child. A fork handler therefore changes the tags of their handles in the
//! child, so that the check in every call fails. `zmq_close`, `zmq_ctx_term` and `zmq_ctx_shutdown`
//! then succeed without any effect. Every other call fails with Interrupted, as in libzmq. The
//! child can make a new context.
//!
//! Two options still work, because programs use them before they close a socket: reading the type,
//! and setting the linger time, which has no effect here.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tautline_core::{Error, SocketType};
use tautline_io::fork;

use crate::context::ContextSlot;
use crate::entry::SocketSlot;
use crate::shared::SharedSlot;

/// `ZMQ_TYPE`.
pub(crate) const TYPE: i32 = 16;
/// `ZMQ_LINGER`.
pub(crate) const LINGER: i32 = 17;

/// Runs the handler in all children from now on. Called before the first handle is given out.
pub(crate) fn watch() {
    // Relaxed: number: one thread registers, and the other threads need not wait for it.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Relaxed) && !WATCHED.swap(true, Relaxed) {
        fork::start_counting();
        fork::call_in_child(inherit_all);
    }
}

extern "C" fn inherit_all() {
    SocketSlot::inherit_all();
    SharedSlot::inherit_all();
    ContextSlot::inherit_all();
}

/// Returns the error of a call on a handle that is not a socket of this process.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
pub(crate) unsafe fn socket_fault(handle: *mut c_void) -> Error {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let inherited = SocketSlot::inherited(handle).is_some() || SharedSlot::inherited(handle).is_some();
        if !inherited {
            return Error::NotSocket;
        }
    }
    tautline_host::note_forked_call();
    Error::Interrupted
}

/// Returns the type of an inherited socket. `None` if the handle is not an inherited socket.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
pub(crate) unsafe fn socket_type(handle: *mut c_void) -> Option<SocketType> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (SocketSlot::inherited(handle), SharedSlot::inherited(handle)) {
            (Some(slot), _) => slot.body().socket_type(),
            (None, Some(slot)) => slot.body().socket_type(),
            (None, None) => None,
        }
    }
}

/// Invalidates the handle of an inherited socket. NotSocket if it is not an inherited socket.
///
/// # Safety
/// `handle` is null, or points to at least four readable bytes (the tag).
#[cold]
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    let closed = unsafe {
        SocketSlot::inherited(handle).is_some_and(|slot| slot.retire_inherited())
            || SharedSlot::inherited(handle).is_some_and(|slot| slot.retire_inherited())
    };
    if closed { Ok(()) } else { Err(Error::NotSocket) }
}
