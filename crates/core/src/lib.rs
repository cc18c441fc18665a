//! The engine of Tautline: the complete behaviour of ZeroMQ, behind [`Context`] and [`Socket`].
//!
//! ```text
//!  owner's thread                                          I/O thread (driver)
//!
//!  Socket ── Pattern ── Pipe                               Acceptor  Dialer
//!    │                   │ encodes into ┌──────────┐          │        │
//!    │                   ├─────────────▶│ outbound │──┐       Wire (handshake, heartbeats,
//!    │                   │              └──────────┘  │ Pump    │     linger)
//!    │                   │ decodes from ┌──────────┐  ├────▶ Connection ◀── residual timer
//!    │                   ◀──────────────│ inbound  │──┘ Intake  │
//!    │                                  └──────────┘            │
//!    ├── Inbox ◀──── news: Attached, Ready, Readable, Ended ────┘
//!    └── ReadSet: the holder of the baton reads (owner or I/O thread)
//! ```
//!
//! A send encodes its frame into the pipe's outbound queue and, by the flush rule, writes the queue
//! to the kernel on the caller's own thread. A receive decodes in place from the inbound queue. If
//! the queue is empty, the caller reads its connections itself. The I/O thread does the work that
//! no caller's thread can do.
//!
//! Lock order: a socket's read set (its members), then a connection's intake, then its pump, then
//! the driver. The locks of two connections are never held together, and no lock of the engine is
//! held across a callback of the application.

#![forbid(unsafe_code)]

mod conn;
mod context;
mod driver;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
mod idle;
mod monitor;
mod pattern;
mod pipe;
pub mod poller;
pub mod proxy;
mod shared;
mod socket;
mod transport;
mod version;
mod wait;
mod zap;

use tautline_config::{endpoint, error, options};

pub use context::Context;
pub use host::TopicAction;
pub use monitor::{CONNECT_FAILED, LOST, Observed, Observer};
pub use pipe::{Cork, PeerReport, PeerState};
pub use shared::{SharedGuard, SharedSocket, wait_in_turns};
pub use socket::{
    Closer, Flags, Socket, TopicAuthorizer, TopicRequest, WaitMode, WaitState, WaitStep, authorize_topics,
    endpoint_fault,
};
#[doc(hidden)]
pub use tautline_config::endpoint::assert_valid as assert_endpoint;
pub use tautline_config::endpoint::{EndpointError, check as check_endpoint};
pub use tautline_config::error::Error;
pub use tautline_config::options::{option_fault, option_name, option_read_fault};
pub use tautline_io::errno::error as system_error;
pub use tautline_io::fd;
pub use tautline_io::lending;
pub use tautline_io::random::fill as fill_random;
pub use tautline_mem::reserve::{ReserveAllocator, is_short as is_memory_short};
pub use tautline_proto::{Secret, SocketType, TlsFault, public_key, z85};
pub use tautline_queue::message::{self, Message, Metadata};
pub use version::version;
