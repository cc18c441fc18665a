//! The C ABI of ZeroMQ 4.3 on Tautline's engine, one concept per file.
//!
//! Programs written for libzmq call these functions through `include/zmq.h`. The prototypes there
//! and the `extern "C"` functions here are the same list. The manual page of each function
//! describes it and lists its errnos. The crate `tautline-libzmq` makes the shared and the static
//! library of them. Modules of other languages contain this crate instead.
//!
//! ```text
//!   context   zmq_ctx_*                      socket    zmq_socket, options, endpoints
//!   transfer  send and receive               msg       zmq_msg_*
//!   poll, proxy, monitor                     what else waits on sockets and watches them
//!   poller    zmq_poller_*                   peer      zmq_join, zmq_connect_peer and their like
//!   slot      memory of handles              entry     one caller at a time into a socket
//!   shared    sockets of many threads        inherited   handles in a forked child
//!   error     zmq_errno, zmq_strerror        version, has   what this library is and can
//!   handle    opaque pointers given to C     guard          no panic crosses the ABI
//!   timers    zmq_timers_*                   stopwatch, thread, atomic_counter   portability helpers
//!   z85, curve   key text and key pairs    native         safe handles for Rust code in the process
//! ```
//!
//! # Safety
//! A caller in C must pass the following; each module says what this means for its functions. The
//! `SAFETY` comments of this crate rely on it.
//!
//! - A handle: null, or a pointer that the library returned (`zmq_socket`, `zmq_ctx_new`, ...). The
//!   handle of a closed socket or context is allowed. Any other object must exist until the call
//!   returns.
//! - A message: null, or 64 bytes (`zmq_msg_t`) that no other thread uses during the call.
//! - A text: null, or characters with a NUL at the end.
//! - A buffer with a length: null, or as many bytes as the length says.
//! - A place for a result: null, or room for the result.
//!
//! Sockets, contexts, pollers and timers begin with a tag of four bytes. Every call reads the tag
//! first, so a handle of another kind is detected. Null and such handles return an errno wherever
//! the manual page names one.

#![cfg_attr(not(feature = "native"), allow(dead_code, reason = "only `native` uses some functions"))]
#![allow(clippy::missing_safety_doc, reason = "the section above holds for every exported function")]

mod atomic_counter;
mod context;
mod curve;
mod entry;
mod error;
mod guard;
mod handle;
mod has;
mod inherited;
mod monitor;
mod msg;
#[cfg(feature = "native")]
pub mod native;
mod peer;
mod poll;
mod poller;
mod proxy;
mod shared;
mod slot;
mod socket;
mod stopwatch;
mod thread;
mod timers;
mod transfer;
mod version;
mod z85;

pub use atomic_counter::*;
pub use context::*;
pub use curve::*;
pub use error::*;
pub use has::*;
pub use monitor::*;
pub use msg::*;
pub use peer::*;
pub use poll::*;
pub use poller::*;
pub use proxy::*;
pub use socket::*;
pub use stopwatch::*;
pub use thread::*;
pub use timers::*;
pub use transfer::*;
pub use version::*;
pub use z85::*;

pub use tautline_core::ReserveAllocator;
