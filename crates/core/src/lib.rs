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

#![deny(unsafe_code)]
// The loom models include the queues, the inbox and the baton, but not the code that uses the other
// modules.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod ablation;
pub(crate) mod conn;
mod error;
pub mod message;
mod queue;
mod sync;

#[cfg(not(loom))]
mod context;
#[cfg(all(feature = "names", not(loom)))]
mod directory;
#[cfg(not(loom))]
mod driver;
#[cfg(not(loom))]
mod endpoint;
#[cfg(all(feature = "fuzzing", not(loom)))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(not(loom))]
mod monitor;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod pattern;
#[cfg(not(loom))]
mod pipe;
#[cfg(not(loom))]
mod policy;
#[cfg(not(loom))]
pub mod poller;
#[cfg(not(loom))]
pub mod proxy;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod socket;
#[cfg(not(loom))]
mod stderr_report;
#[cfg(not(loom))]
mod timing;
#[cfg(not(loom))]
mod transport;
#[cfg(not(loom))]
mod version;
#[cfg(not(loom))]
mod wait;
#[cfg(not(loom))]
mod watch;
#[cfg(not(loom))]
mod zap;

#[cfg(not(loom))]
pub use context::Context;
pub use error::Error;
pub use message::{Message, Metadata};
#[cfg(not(loom))]
pub use monitor::{CONNECT_FAILED, LOST, Observed, Observer};
#[cfg(not(loom))]
pub use options::{option_fault, option_name, option_read_fault};
#[cfg(not(loom))]
pub use pipe::Cork;
#[cfg(not(loom))]
#[doc(hidden)]
pub use policy::{Forecast, Foreseen, certificate_faults, foresee};
#[cfg(not(loom))]
pub use policy::{TopicAction, TopicAuthorizer, TopicRequest};
#[cfg(not(loom))]
pub use shared::{SharedGuard, SharedSocket, wait_in_turns};
#[cfg(not(loom))]
pub use socket::{
    Closer, Flags, Socket, WaitMode, WaitState, WaitStep, authorize_topics, endpoint_fault, show_route,
};
pub use tautline_io::errno::error as system_error;
pub use tautline_io::fd;
pub use tautline_io::random::fill as fill_random;
pub use tautline_mem::reserve::{ReserveAllocator, is_short as is_memory_short};
#[cfg(not(loom))]
pub use tautline_observe::{Peer as PeerReport, PeerState, Route as RouteReport};
pub use tautline_proto::{Secret, SocketType, TlsFault, public_key, z85};
#[cfg(not(loom))]
pub use version::version;
