//! Helpers for the tests of whole sockets in contexts with the services of this crate.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

#[cfg(unix)]
pub mod policy;
#[path = "../../../core/tests/common/mod.rs"]
mod sockets;

pub use sockets::*;

use std::time::Duration;

use tautline_core::Context;
use tautline_testkit::with_watchdog;

/// Runs a test in a separate context, which must terminate.
pub fn test(name: &str, body: impl FnOnce(&Context) + Send + 'static) {
    with_watchdog(Duration::from_secs(120), name, move || {
        let context = tautline_host::context();
        body(&context);
        context.terminate().unwrap();
    });
}
