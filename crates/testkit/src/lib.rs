//! What the tests of the other crates share. Used as a dev-dependency only.
//!
//! * [`watchdog`]: ends a test process that hangs, with the name of the test that did
//! * [`certificates`]: certificates and keys of TLS
//! * [`endpoint`]: endpoints that nothing else uses
//! * [`random`]: a small seeded random source, so that a failure can be repeated
//!
//! Nothing here knows the engine: the crate has no dependencies and every layer may use it.

#![forbid(unsafe_code)]

pub mod certificates;
pub mod endpoint;
pub mod random;
pub mod watchdog;

pub use random::XorShift;
pub use watchdog::with_watchdog;
