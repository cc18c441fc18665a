//! The native part of Tautline's Node.js binding: sockets of the engine, as `lib/` in JavaScript needs them.
//!
//! ```text
//!  lib/*.js      classes, promises, options by name
//!     │  numbers and byte arrays: 0 or more is a result, less is an errno
//!  calls.rs      the calls for every message or batch
//!  socket.rs     one socket: send, receive many, options, endpoints
//!  loans.rs      buffers that are sent without a copy
//!  readiness.rs  waiting for a socket: its descriptors in the event loop
//!  runtime.rs    shared state of the sockets of one JavaScript thread, and the end of the thread
//!  uv.rs         the functions of libuv that this crate uses
//! ```
//!
//! The code runs on the thread of its JavaScript environment. A proxy and the end of a context have their own threads. Three calls
//! block the JavaScript thread:
//!
//! - `bind` and `unbind` of a host name wait for the resolver.
//! - `has` waits at most 10 µs for connections.
//! - The end of the JavaScript thread waits until the queued messages of its contexts are sent, as `zmq_ctx_term(3)` does.

mod calls;
mod context;
mod errors;
mod loans;
mod proxy;
mod readiness;
mod runtime;
mod socket;
mod typed_arrays;
mod uv;

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use tautline_core::{Secret, public_key, z85};

/// Serves the first failing allocations from a reserve, so that calls return ENOMEM.
#[global_allocator]
static ALLOCATOR: tautline_core::ReserveAllocator = tautline_core::ReserveAllocator;

/// Returns the public key of a secret key of 32 bytes, and the secret key, as 40 characters of Z85 each. `None` if the length is
/// wrong.
#[napi(catch_unwind)]
pub fn curve_keys(secret: Uint8Array) -> Option<Vec<String>> {
    let secret = Secret::new(secret.as_ref().try_into().ok()?);
    Some(vec![text(&public_key(&secret)), text(&secret)])
}

/// Returns the version of Tautline.
#[napi(catch_unwind)]
pub fn tautline_version() -> &'static str {
    tautline_core::version()
}

fn text(key: &[u8; 32]) -> String {
    String::from_utf8_lossy(&z85::encode_key(key)).into_owned()
}
