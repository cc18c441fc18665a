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
//! * A [`Context`] for the program, a [`Socket`] for each purpose: [`Push`], [`Pull`], [`Pub`],
//!   [`Sub`], [`Req`], [`Rep`], [`Dealer`], [`Router`], [`Pair`], ... What a kind cannot do does
//!   not compile.
//! * Options with Rust types in a [`Builder`]; what has no name there can be set by number.
//! * [`Message`] for one part, [`Multipart`] for several; `send` takes whatever converts into a
//!   [`Frame`].
//! * [`aio`]: the same sockets for async programs, on any executor.
//! * [`curve`] and [`zap`]: encryption, and which peers may come in. [`monitor`]: events and
//!   statistics.
//! * [`replay`]: a PUB that keeps its last messages, and a SUB that asks for those it has missed.
//! * [`topics`]: publish and subscribe by name and glob, in a process, on a host, between hosts.
//! * [`Socket::split`] for a thread that sends and one that receives, [`poll()`] for many sockets,
//!   [`proxy()`] to join two.
//! * Messages are batched on the wire by themselves, and the first one of a lull goes out at once.
//!   There is nothing to flush. A program that has many messages at hand may use
//!   [`Socket::send_batch`] and [`Socket::recv_batch`].
//! * [`Context::terminate_within`]: an end with a deadline.
//! * A forked child makes a context of its own. It may drop sockets of its parent and must not use
//!   them otherwise; a call that would wait fails there.
//!
//! New to ZeroMQ? [The guide](guide) takes an hour. From another ZeroMQ for Rust [the way is
//! short](migration).
//!
//! # Features
//!
//! | feature | default | what it brings |
//! |---|---|---|
//! | `tokio` | off | on tokio, the task that waits does the I/O itself: no change of threads |
//! | `bytes` | off | [`Message`] from and to `bytes::Bytes`, without copying large ones |
//! | `futures` | off | `Stream` and `Sink` for [`aio::Socket`], `Stream` for [`aio::Monitor`] |
//! | `tracing` | off | what happens to connections, as events of the crate `tracing`; see [`trace`] |
//! | `metrics` | off | what sockets have done, as metrics of the crate `metrics`; see [`mod@metrics`] |
//! | `serde` | off | events, statistics, errors, keys and messages as JSON and the like; see [`mod@serde`] |
//! | `tls` | off | the transports `tls+tcp` and `wss`; the only feature that needs a C compiler |
//!
//! # Threads
//!
//! A socket may be moved to another thread, and is used by one at a time: its methods take `&mut
//! self`. [`Socket::split`] it for two; between more threads use several sockets, over `inproc` for
//! example. [`Context`]s are shared freely.
//!
//! # Versions
//!
//! Rust 1.89 or newer, on Linux. A newer Rust is asked for by a new minor version only. Public
//! enums and structs that may grow are `non_exhaustive`.

#![forbid(unsafe_code)]

// The programs in the documents beside the crate are run with its examples.
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
mod subject;
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
#[doc(hidden)]
pub use tautline_core::{Forecast, Foreseen, foresee};

/// The version of Tautline, for example `0.1.0`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exclusive pair (RFC 31).
pub type Pair = Socket<kind::Pair>;
/// Distributes to subscribers (RFC 29).
pub type Pub = Socket<kind::Pub>;
/// Receives what it has subscribed to (RFC 29).
pub type Sub = Socket<kind::Sub>;
/// PUB that sees its subscribers' subscriptions.
pub type XPub = Socket<kind::XPub>;
/// SUB that subscribes by sending.
pub type XSub = Socket<kind::XSub>;
/// Asks (RFC 28).
pub type Req = Socket<kind::Req>;
/// Answers (RFC 28).
pub type Rep = Socket<kind::Rep>;
/// Asks many peers at once (RFC 28).
pub type Dealer = Socket<kind::Dealer>;
/// Answers each peer by its routing id (RFC 28).
pub type Router = Socket<kind::Router>;
/// Hands out work (RFC 30).
pub type Push = Socket<kind::Push>;
/// Takes work (RFC 30).
pub type Pull = Socket<kind::Pull>;
/// Raw TCP.
pub type Stream = Socket<kind::Stream>;
