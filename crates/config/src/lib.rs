//! Settings of a socket, endpoints, errors and events, as plain values.
//!
//! ```text
//!   bytes of zmq_setsockopt ──▶ options   one row for each ZMQ_* number: form, range, field
//!   tcp://127.0.0.1:5555    ──▶ endpoint  the grammar of each scheme, with the errno of libzmq
//!   a refusal               ──▶ error     one errno of the man pages for each variant
//!   an event and its value  ──▶ event     its reason in words
//! ```
//!
//! The crate works on texts and bytes alone. The transports of `core` find out if the hosts,
//! interfaces and files of an endpoint exist.

#![forbid(unsafe_code)]

pub mod endpoint;
pub mod error;
pub mod event;
pub mod options;
