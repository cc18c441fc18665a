//! The same sockets for async programs, on any executor.
//!
//! [`Socket`](crate::Socket)s become async ones by
//! [`Socket::into_async`](crate::Socket::into_async) and keep their names: `aio::Push`, `aio::Sub`,
//! ... There is no dependency on a runtime: a task that waits spins for a moment in turns with the
//! other tasks of its thread (a message from a quick peer costs no change of threads), then rests
//! until the engine's I/O thread wakes it. With the feature `tokio`, in a tokio runtime, a resting
//! task is woken by tokio itself and reads on its own; if nothing comes for some milliseconds, or
//! the runtime is busy, the I/O thread looks after the socket again. The runtime needs I/O
//! (`enable_all` or `enable_io` of its builder): without, the first wait panics and says so, as
//! with tokio's own sockets.
//!
//! # Cancellation
//!
//! Every future here may be dropped before it is done, by `select!` or a timeout:
//! [`recv`](Socket::recv) and its kin have not taken anything then, [`send`](Socket::send) and its
//! kin have not sent anything. (An owned message that was to be sent is dropped with the future.)
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

mod monitor;
mod park;
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
/// CLIENT: asks SERVERs, as often as it likes.
pub type Client = Socket<kind::Client>;
/// SERVER: answers, by the [`PeerId`](crate::PeerId) of a message.
pub type Server = Socket<kind::Server>;
/// RADIO: distributes to groups.
pub type Radio = Socket<kind::Radio>;
/// DISH: receives what is sent to the groups it has joined.
pub type Dish = Socket<kind::Dish>;
/// SCATTER: hands out work.
pub type Scatter = Socket<kind::Scatter>;
/// GATHER: takes work.
pub type Gather = Socket<kind::Gather>;
/// PEER: asks and answers, by the [`PeerId`](crate::PeerId) of a message.
pub type Peer = Socket<kind::Peer>;
/// CHANNEL: an exclusive pair.
pub type Channel = Socket<kind::Channel>;
/// DGRAM: `udp` datagrams, each an address and a body.
pub type Dgram = Socket<kind::Dgram>;
