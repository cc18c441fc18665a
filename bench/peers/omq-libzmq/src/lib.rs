//! The C functions are those of the crate.
pub use omq_zmq::*;
