//! Sockets and contexts of the parent, as a forked child has them.
//!
//! The descriptors and connections behind them are the parent's, and the I/O threads are not there.
//! So a handler of fork marks their handles in the child, and the tags that every call checks do
//! not fit any more. `zmq_close`, `zmq_ctx_term` and `zmq_ctx_shutdown` then succeed and touch
//! nothing; every other call fails with Interrupted, as in libzmq. The child can make a context of
//! its own.
//!
//! Two options are answered nevertheless, as programs ask for them before they close a socket: the
//! type, and setting the linger time, which means nothing here.

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

/// Lets the handler run in children from now on. Called before the first handle is given out.
pub(crate) fn watch() {
    // Relaxed: number: one thread registers, and others need not wait for it.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Relaxed) && !WATCHED.swap(true, Relaxed) {
        fork::watch();
        fork::call_in_child(inherit_all);
    }
}

extern "C" fn inherit_all() {
    SocketSlot::inherit_all();
    SharedSlot::inherit_all();
    ContextSlot::inherit_all();
}

/// Returns what a call on a handle fails with that is no socket of this process.
///
/// # Safety
/// `handle` is null, or points to four readable bytes.
#[cold]
pub(crate) unsafe fn socket_fault(handle: *mut c_void) -> Error {
    // SAFETY: the caller's word.
    unsafe {
        let inherited = SocketSlot::inherited(handle).is_some() || SharedSlot::inherited(handle).is_some();
        if inherited { Error::Interrupted } else { Error::NotSocket }
    }
}

/// Returns the type of an inherited socket. `None` if the handle is none.
///
/// # Safety
/// As for [`socket_fault`].
#[cold]
pub(crate) unsafe fn socket_type(handle: *mut c_void) -> Option<SocketType> {
    // SAFETY: the caller's word.
    unsafe {
        match (SocketSlot::inherited(handle), SharedSlot::inherited(handle)) {
            (Some(slot), _) => slot.body().socket_type(),
            (None, Some(slot)) => slot.body().socket_type(),
            (None, None) => None,
        }
    }
}

/// Ends the handle of an inherited socket. NotSocket if it is none.
///
/// # Safety
/// As for [`socket_fault`].
#[cold]
pub(crate) unsafe fn close(handle: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's word.
    let closed = unsafe {
        SocketSlot::inherited(handle).is_some_and(|slot| slot.retire_inherited())
            || SharedSlot::inherited(handle).is_some_and(|slot| slot.retire_inherited())
    };
    if closed { Ok(()) } else { Err(Error::NotSocket) }
}
