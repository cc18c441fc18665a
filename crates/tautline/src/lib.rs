//! ZeroMQ for Rust: every pattern, blocking and async, over the engine of Tautline.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::{Context, Rep, Req};
//!
//! let context = Context::new();
//! let mut service = Rep::new(&context)?;
//! let endpoint = service.bind("tcp://127.0.0.1:*")?;
//!
//! let mut client = Req::new(&context)?;
//! client.connect(&endpoint)?;
//! client.send("Hello")?;
//!
//! let question = service.recv()?;
//! service.send(format!("{}, World", question.to_string_lossy()))?;
//! assert_eq!(client.recv()?, "Hello, World");
//! # Ok(()) }
//! ```
//!
//! * One [`Context`] for the program, and one [`Socket`] for each purpose: [`Push`], [`Pull`],
//!   [`Pub`], [`Sub`], [`Req`], [`Rep`], [`Dealer`], [`Router`], [`Pair`], ... A call that a kind
//!   does not support does not compile.
//! * Options with Rust types in a [`Builder`]. Options without a method there can be set by number.
//! * [`Message`] for one part, [`Multipart`] for several parts. `send` takes every type that
//!   converts into a [`Frame`], the body of one part: `&str`, `Vec<u8>`, [`Message`], ...
//! * [`aio`]: the same sockets for async programs, on any executor.
//! * [`curve`] and [`zap`]: encryption and access control. [`monitor`]: events and statistics.
//! * [`replay`]: a PUB that keeps its last messages, and a SUB that requests the messages it
//!   missed, for threads and for tasks.
//! * [`topics`]: publish and subscribe by name and glob, within a process, a host or a network.
//! * [`Socket::split`] for one sending and one receiving thread, [`poll()`] for many sockets,
//!   [`proxy()`] to join two sockets.
//! * Messages are batched on the wire automatically. If a connection is idle, the first message is
//!   sent at once. The program never has to flush. If it has many messages ready, it can use
//!   [`Socket::send_batch`] and [`Socket::recv_batch`].
//! * [`Context::terminate_within`]: shutdown with a deadline.
//! * A forked child must create its own context. It may drop sockets of its parent, but must not
//!   use them otherwise. A call that would wait fails in the child.
//!
//! If you are new to ZeroMQ, [the guide](guide) takes an hour. If you use another ZeroMQ crate, see
//! the short [migration guide](migration).
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `tokio` | off | on tokio, the waiting task does the I/O itself, without a thread switch |
//! | `bytes` | off | converts [`Message`] from and to `bytes::Bytes`; large bodies are not copied |
//! | `futures` | off | `Stream` and `Sink` for [`aio::Socket`], `Stream` for [`aio::Monitor`] |
//! | `tracing` | off | connection events as events of the crate `tracing`; see [`trace`] |
//! | `metrics` | off | socket statistics as metrics of the crate `metrics`; see [`mod@metrics`] |
//! | `serde` | off | serializes events, statistics, errors, keys and messages; see [`mod@serde`] |
//! | `tls` | off | the transports `tls+tcp` and `wss`; the only feature that needs a C compiler |
//! | `wss` | off | another name of `tls` |
//! | `names` | off | endpoints `name://orders`; see [`Context::set_names`] and [`topics`] |
//! | `curve-dryoc` | off | ciphers of CURVE from `dryoc`: several times faster for long messages, but not audited |
//!
//! # Threads
//!
//! A socket can move to another thread, but only one thread uses it at a time: its methods take
//! `&mut self`. [`Socket::split`] makes two halves for two threads. For more threads, use several
//! sockets, for example over `inproc`. [`Context`]s can be shared freely.
//!
//! # Versions
//!
//! Rust 1.89 or newer, on Linux. Only a new minor version raises the required Rust version. Public
//! enums and structs that may grow are `non_exhaustive`.

#![forbid(unsafe_code)]

// Tests the programs in the Markdown documents as doc tests. The guide and the migration guide are
// also pages of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
#[cfg(any(doc, doctest))]
#[doc = include_str!("../guide.md")]
pub mod guide {}
#[cfg(any(doc, doctest))]
#[doc = include_str!("../migration.md")]
pub mod migration {}

pub mod aio;
mod batch;
mod builder;
mod context;
pub mod curve;
mod draft;
pub mod endpoint;
pub mod error;
mod error_subject;
pub mod kind;
mod message;
#[cfg(any(feature = "metrics", doc))]
pub mod metrics;
pub mod monitor;
mod option;
mod poll;
mod proxy;
pub mod replay;
mod routing;
#[cfg(any(feature = "serde", doc))]
pub mod serde;
mod socket;
mod split;
pub mod topics;
#[cfg(any(feature = "tracing", doc))]
pub mod trace;
pub mod zap;

pub use builder::Builder;
pub use context::Context;
pub use draft::{Channel, Client, Dgram, Dish, Gather, Peer, PeerId, Radio, Scatter, Server};
pub use error::{Error, Result};
pub use message::{Frame, Message, Multipart};
pub use poll::{PollItem, poll};
pub use proxy::{proxy, proxy_steerable};
pub use routing::RoutingId;
pub use socket::Socket;
pub use split::{ReceiveHalf, SendHalf};
// For the command `taut policy`, which predicts the effect of a policy on a call.
#[doc(hidden)]
pub use tautline_host::{Forecast, Foreseen, certificate_faults, foresee};

/// The version of Tautline, for example `0.1.0`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exclusive pair (RFC 31).
pub type Pair = Socket<kind::Pair>;
/// Distributes messages to subscribers (RFC 29).
pub type Pub = Socket<kind::Pub>;
/// Receives the messages that it subscribed to (RFC 29).
pub type Sub = Socket<kind::Sub>;
/// PUB that receives the subscriptions of its subscribers.
pub type XPub = Socket<kind::XPub>;
/// SUB that subscribes by sending subscription messages.
pub type XSub = Socket<kind::XSub>;
/// Sends requests (RFC 28).
pub type Req = Socket<kind::Req>;
/// Answers requests (RFC 28).
pub type Rep = Socket<kind::Rep>;
/// Sends each request to the next of its peers, without waiting for replies (RFC 28).
pub type Dealer = Socket<kind::Dealer>;
/// Answers each peer by its routing id (RFC 28).
pub type Router = Socket<kind::Router>;
/// Distributes work (RFC 30).
pub type Push = Socket<kind::Push>;
/// Receives work (RFC 30).
pub type Pull = Socket<kind::Pull>;
/// Raw TCP.
pub type Stream = Socket<kind::Stream>;
