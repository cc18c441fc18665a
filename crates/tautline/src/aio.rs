//! The same sockets for async programs, on any executor.
//!
//! [`Socket::into_async`](crate::Socket::into_async) converts a [`Socket`](crate::Socket) into an
//! async socket. The async sockets keep their names: `aio::Push`, `aio::Sub`, ... They depend on no
//! runtime. A waiting task first spins for a moment, in turns with the other tasks of its thread,
//! so that a message from a fast peer needs no thread switch. Then the task sleeps until the
//! engine's I/O thread wakes it. With the feature `tokio`, in a tokio runtime, tokio wakes the
//! sleeping task, and the task does its own reads. If no message arrives for some milliseconds, or
//! if the runtime is busy, the I/O thread serves the socket again. The runtime needs I/O
//! (`enable_all` or `enable_io` of its builder). Without I/O, the first wait panics with a message,
//! as with tokio's own sockets.
//!
//! # Cancellation
//!
//! Every future in this module can be dropped early, by `select!` or a timeout.
//! [`recv`](Socket::recv) and the other receive calls have then not taken a message, and
//! [`send`](Socket::send) and the other send calls have not sent one. (An owned message to be sent
//! is dropped with the future.)
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! # use tautline::{Context, Error, Pull, Push};
//! # fn block_on<F: std::future::Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     struct Unpark(std::thread::Thread);
//! #     impl std::task::Wake for Unpark { fn wake(self: std::sync::Arc<Self>) { self.0.unpark() } }
//! #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
//! #     let mut cx = std::task::Context::from_waker(&waker);
//! #     loop {
//! #         if let std::task::Poll::Ready(out) = future.as_mut().poll(&mut cx) { return out; }
//! #         std::thread::park();
//! #     }
//! # }
//! # block_on(async {
//! let context = Context::new();
//! let mut sink = Pull::new(&context)?.into_async();
//! let endpoint = sink.bind("tcp://127.0.0.1:*")?;
//! let mut source = Push::builder(&context).connect(&endpoint)?.into_async();
//!
//! source.send("work").await?;
//! assert_eq!(sink.recv().await?, "work");
//! # Ok::<(), Error>(()) })
//! # }
//! ```

pub(crate) mod alarm;
mod monitor;
mod park;
mod peers;
mod socket;
mod split;
#[cfg(feature = "futures")]
mod stream;
mod terminate;

pub use monitor::Monitor;
pub use socket::Socket;
pub use split::{ReceiveHalf, SendHalf};
pub use terminate::terminate;

use crate::kind;

/// Exclusive pair (RFC 31).
pub type Pair = Socket<kind::Pair>;
/// Distributes messages to subscribers (RFC 29).
pub type Pub = Socket<kind::Pub>;
/// Receives the messages that it subscribed to (RFC 29).
pub type Sub = Socket<kind::Sub>;
/// PUB that receives the subscriptions of its subscribers.
pub type XPub = Socket<kind::XPub>;
/// SUB that subscribes by sending.
pub type XSub = Socket<kind::XSub>;
/// Sends requests (RFC 28).
pub type Req = Socket<kind::Req>;
/// Answers requests (RFC 28).
pub type Rep = Socket<kind::Rep>;
/// Sends requests to many peers at once (RFC 28).
pub type Dealer = Socket<kind::Dealer>;
/// Answers each peer by its routing id (RFC 28).
pub type Router = Socket<kind::Router>;
/// Distributes work (RFC 30).
pub type Push = Socket<kind::Push>;
/// Receives work (RFC 30).
pub type Pull = Socket<kind::Pull>;
/// Raw TCP.
pub type Stream = Socket<kind::Stream>;
/// CLIENT: sends requests to SERVERs, without fixed turns.
pub type Client = Socket<kind::Client>;
/// SERVER: replies by the [`PeerId`](crate::PeerId) of a message.
pub type Server = Socket<kind::Server>;
/// RADIO: distributes messages to groups.
pub type Radio = Socket<kind::Radio>;
/// DISH: receives the messages of the groups that it has joined.
pub type Dish = Socket<kind::Dish>;
/// SCATTER: distributes work.
pub type Scatter = Socket<kind::Scatter>;
/// GATHER: receives work.
pub type Gather = Socket<kind::Gather>;
/// PEER: sends requests and replies, by the [`PeerId`](crate::PeerId) of a message.
pub type Peer = Socket<kind::Peer>;
/// CHANNEL: an exclusive pair.
pub type Channel = Socket<kind::Channel>;
/// DGRAM: `udp` datagrams, each an address and a body.
pub type Dgram = Socket<kind::Dgram>;
