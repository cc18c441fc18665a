//! The native part of Tautline's Python binding: contexts, sockets and message frames of the
//! engine, with the methods that pyzmq expects of a backend.
//!
//! ```text
//!  tautline_zmq.backend   the names that pyzmq imports, in Python
//!     │
//!  context.rs    Context                    frame.rs      Frame, a message part in Python's hands
//!  socket.rs     Socket                     options.rs    types of the socket options
//!  transfer.rs   send and receive           batch.rs      many messages in one call
//!  parts.rs      the parts of a message on their way to the socket
//!  poll.rs       zmq_poll                   readiness.rs  one descriptor for an event loop
//!  functions.rs  functions of the module    errors.rs     exceptions
//!  native_*.rs   sockets of tautline_zmq, for programs without pyzmq
//!  burst.rs      calls of zmq.asyncio that complete at once
//!  turns.rs      fairness of asynchronous sockets
//!  dlpack.rs     a frame as a tensor of bytes
//!  owned.rs      values of the crate `tautline`: replay.rs, topics.rs, access.rs
//!  enter.rs      one caller at a time inside a socket, and the interpreter lock
//!  buffer.rs     memory of Python objects   reaper.rs     memory that the engine has released
//!  draft.rs      the descriptor of sockets  exit.rs       threads that outlive the interpreter
//!                that several threads may use
//! ```
//!
//! # Threads
//! A call first tries without waiting, while it holds the interpreter lock (GIL). Only a call that
//! has to wait, or to copy much memory, releases the lock. A thread leaves the socket
//! before it runs Python code: a finalizer could close the same socket, and the thread would wait for
//! itself.
//!
//! Free-threaded Python has no GIL, and the module does not turn it on. Its rules hold there, with
//! "attached to the interpreter" in place of "holds the lock":
//!
//! * A socket has one caller at a time by an atomic exchange, also among threads that run at the
//!   same time (`enter.rs`). All other shared state is atomic, or has a lock.
//! * An attached thread must not wait for a thread that the garbage collector may pause. A lock of
//!   this module is therefore released before Python code runs, and every wait is detached.
//! * A fork pauses all attached threads between two operations of Python, so none of them holds such
//!   a lock.
//!
//! # Forks
//! In a forked child, sockets and contexts of the parent are closed: `close` and `term` have no
//! effect, and every other call fails with ENOTSOCK.

mod access;
mod batch;
mod buffer;
mod burst;
mod context;
mod dlpack;
mod draft;
mod enter;
mod errors;
mod exit;
mod frame;
mod functions;
mod native_errors;
mod native_functions;
mod native_socket;
mod native_sync;
mod native_transfer;
mod options;
mod owned;
mod parts;
mod poll;
#[cfg(target_os = "linux")]
mod readiness;
mod reaper;
mod replay;
mod socket;
mod topics;
mod transfer;
mod turns;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Serves the first failing allocations from a reserve, so that calls return ENOMEM.
#[global_allocator]
static ALLOCATOR: tautline_core::ReserveAllocator = tautline_core::ReserveAllocator;

/// Number of the main interpreter. Others would share the classes and the exit of this one.
const MAIN_INTERPRETER: i64 = 0;

/// The module `tautline_zmq._native`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: this thread holds the lock of an interpreter.
    let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if interpreter != MAIN_INTERPRETER {
        return Err(PyImportError::new_err("tautline_zmq._native runs only in the main interpreter"));
    }
    module.add_class::<context::Context>()?;
    module.add_class::<socket::Socket>()?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<native_socket::NativeSocket>()?;
    module.add_class::<native_sync::SyncSocket>()?;
    module.add_class::<burst::Burst>()?;
    #[cfg(target_os = "linux")]
    module.add_class::<readiness::Readiness>()?;
    poll::register(module)?;
    functions::register(module)?;
    native_functions::register(module)?;
    replay::register(module)?;
    topics::register(module)?;
    module.add_class::<access::AllowList>()?;
    reaper::register(module)
}
