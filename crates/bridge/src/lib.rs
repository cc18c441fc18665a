//! Routes between ZeroMQ sockets and NATS, many in one process: `taut bridge CONFIG.toml`.
//!
//! ```text
//!            config ──▶ supervise ── starts, ends and replaces routes
//!                           │
//!   zmq ◀─── route/* ───────┴──────▶ nats
//!              │  publish   SUB, PULL  ──▶ core NATS
//!              │  deliver   core NATS  ──▶ PUB, PUSH
//!              │  stored    PULL, SUB, ROUTER ──▶ a stream
//!              │  worked    a stream ──▶ DEALER, ROUTER, whose workers answer
//!              │  replay    a stream ──▶ PUB, from a place in it
//!              └─ topic (topic ↔ subject), envelope (parts ↔ payload)
//! ```
//!
//! Each route is one task, which owns its ZeroMQ socket. When a route ends, it returns its socket,
//! which may still hold messages from senders. A changed route continues with that socket.
//!
//! `docs/use/jetstream.md` describes the promise of each route.

#![forbid(unsafe_code)]

/// Writes a line to standard error. Errors are ignored, because the terminal may be closed.
macro_rules! notice {
    ($($text:tt)*) => {{
        let line = format!("taut: bridge: {}\n", format_args!($($text)*));
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }};
}

mod config;
mod counters;
mod envelope;
mod fault;
mod login;
pub mod names;
mod nats;
mod route;
mod stop;
mod supervise;
mod topic;
mod zmq;

pub use config::Config;
pub use fault::BridgeError;
pub use supervise::{Options, run};
