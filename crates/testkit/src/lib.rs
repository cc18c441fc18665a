//! Code that the tests of the other crates share. Used as a dev-dependency only.
//!
//! * [`watchdog`]: aborts a hanging test process, with the name of the hanging test
//! * [`certificates`]: certificates and keys of TLS
//! * [`endpoint`]: unused endpoints
//! * [`random`]: a small seeded random source, so that a failure can be repeated
//!
//! The crate does not use the engine and has no dependencies, so every layer can use it.

#![forbid(unsafe_code)]

pub mod certificates;
pub mod endpoint;
pub mod random;
pub mod watchdog;

pub use random::XorShift;
pub use watchdog::with_watchdog;
