//! The services of a host for the engine: the resolvers of names.
//!
//! ```text
//!  Context ─ Host ─ Resolve    Directory: a names file, a folder of the host, DNS
//! ```
//!
//! The engine (crate `tautline-core`) knows only the traits of `tautline_core::host`. [`context`]
//! creates a context that asks the services of this crate.

#![forbid(unsafe_code)]

#[cfg(feature = "names")]
mod directory;

use tautline_core::Context;
use tautline_core::host::Host;

/// Creates a context with the services that the environment names.
pub fn context() -> Context {
    Context::with(host())
}

/// Returns the services of this crate, with those that the environment names in force.
pub fn host() -> Host {
    #[cfg_attr(not(feature = "names"), allow(unused_mut, reason = "names set fields"))]
    let mut host = Host::default();
    #[cfg(feature = "names")]
    {
        host.resolve = directory::of_environment();
        host.open_names = Some(directory::open);
    }
    host
}
