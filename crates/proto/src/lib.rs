//! ZMTP without I/O: the wire protocol of ZeroMQ as pure state machines.
//!
//! Speaks ZMTP 3.1 (RFC 37) and falls back to 3.0 (RFC 23), 2.0 (RFC 15) and 1.0 (RFC 13). This
//! crate owns no sockets, reads no clock and starts no threads: the code that serves a connection
//! passes bytes in and takes bytes out. All input is hostile until proven otherwise. Every
//! violation is a [`ProtocolError`] that names the clause. Memory use never exceeds a fixed bound
//! or the number of bytes that have really arrived.
//!
//! ```text
//!   bytes from the peer                                          bytes to the peer
//!          │                                                            ▲
//!          ▼            until established                               │
//!   Session::input ──▶ greeting ──▶ handshake ──▶ mechanism ──▶ Session::output
//!          │
//!          ├─▶ Credentials, to be judged (zap) ──▶ Session::admit, Session::refuse
//!          └─▶ Established { version, peer, stage }
//!
//!          │            afterwards                                      ▲
//!          ▼                                                            │
//!     Stage::open ──▶ plain 3.1 frames (frame, command) ──▶ Stage::seal
//! ```
//!
//! With a 3.1 peer over NULL or PLAIN there is no stage: the frames on the wire are the frames in
//! the queue. A STREAM or raw ROUTER connection has no session: it uses [`stage::raw`] from the
//! first byte.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod carrier;
pub mod command;
pub mod error;
pub mod frame;
mod greeting;
mod handshake;
mod mechanism;
mod memory;
pub mod metadata;
mod reply;
mod secret;
mod session;
mod socket_type;
pub mod socks;
pub mod stage;
#[cfg(feature = "tls")]
pub mod tls;
pub mod ws;
pub mod z85;
pub mod zap;

pub use carrier::{Carrier, Direct, PeerCertificates, with_carrier};
pub use command::legacy_subscription;
pub use error::{AuthFailure, Mismatch, ProtocolError, TlsFault, Violation, ZapFault};
pub use greeting::Version;
pub use handshake::Peer;
pub use mechanism::{MechanismConfig, Random, ServerKeys, public_key};
pub use memory::check_available;
pub use reply::ReplyForm;
pub use secret::Secret;
pub use session::{Established, Session, SessionConfig};
pub use socket_type::SocketType;
pub use stage::Stage;
