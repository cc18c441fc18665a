//! The native part of Tautline's Node.js binding: sockets of the engine, as `lib/` in JavaScript needs them.
//!
//! ```text
//!  lib/*.js      classes, promises, options by name
//!     │  numbers and byte arrays: 0 or more is a result, less is an errno
//!  calls.rs      what is called for every message or batch
//!  socket.rs     one socket: send, receive many, options, endpoints
//!  readiness.rs  when a socket may go on: its descriptors in the event loop
//!  runtime.rs    what the sockets of one JavaScript thread share, and its end
//!  uv.rs         the few functions of libuv that this takes
//! ```
//!
//! All of it runs on the thread of its JavaScript environment; only a proxy has a thread of its own. Nothing here blocks but the end
//! of the process, which waits for what is queued as `zmq_ctx_term(3)` does.

mod calls;
mod context;
mod errors;
mod proxy;
mod readiness;
mod runtime;
mod socket;
mod uv;
mod view;

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use tautline_core::{Secret, public_key, z85};

/// The public key of the secret one that is given, and that; 40 characters of Z85 each.
#[napi(catch_unwind)]
pub fn curve_keys(secret: Uint8Array) -> Option<Vec<String>> {
    let secret = Secret::new(secret.as_ref().try_into().ok()?);
    Some(vec![text(&public_key(&secret)), text(&secret)])
}

/// The version of Tautline.
#[napi(catch_unwind)]
pub fn tautline_version() -> &'static str {
    tautline_core::version()
}

fn text(key: &[u8; 32]) -> String {
    String::from_utf8_lossy(&z85::encode_key(key)).into_owned()
}
