//! PUB/SUB that knows what it lost, and asks for it again.
//!
//! A SUB that joins late, reads too slowly or loses its connection misses messages, and is not
//! told. [`ReliablePub`] numbers what it publishes and keeps the last messages in memory.
//! [`ReliableSub`] looks at the numbers, asks for what is missing, and tells what cannot be had any
//! more.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::Context;
//! use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
//!
//! let context = Context::new();
//! let mut publisher = ReliablePub::builder(&context).keep(1000).build()?;
//! let live = publisher.bind("tcp://127.0.0.1:*")?;
//! let ring = publisher.serve("tcp://127.0.0.1:*")?;
//! publisher.send("prices/gold", "1980")?;
//!
//! // It comes late, and begins with the oldest message that is kept.
//! let mut subscriber = ReliableSub::builder(&context)
//!     .subscribe("prices/")
//!     .start(Start::Oldest)
//!     .connect(&live, &ring)?;
//! match subscriber.recv()? {
//!     Delivery::Message(update) => assert!(update.topic == "prices/gold" && update.body == "1980"),
//!     other => println!("{other:?}"),
//! }
//! # Ok(()) }
//! ```
//!
//! # On the wire
//!
//! A message has three parts: the topic, its number in 8 bytes (big-endian), the body. Any SUB can
//! read it. The ring is a ROUTER. A request is one part, the number to begin with in 8 bytes,
//! behind an empty one, as a REQ or a DEALER with a delimiter sends it. Each answer is an empty
//! part, the topic, the number and the body, from the oldest to the newest message; the last one
//! has the number 2⁶⁴ − 1 and an empty body. That is what the publisher of KV-cache events of vLLM
//! speaks from version 0.26 on. (Those before have no topic in their answers; a [`ReliableSub`]
//! takes them with an empty one.)
//!
//! The *epoch* of a publisher is 8 bytes that change each time the publisher starts. It is the
//! topic of the last answer. Both sockets of the publisher also show it to their peers, as the
//! property `X-Taut-Epoch` of their connections (16 hexadecimal digits). With it a [`ReliableSub`]
//! sees a restart, after which the numbers begin with 0 again:
//!
//! * By the property, each message shows of which epoch it is. If a live message is of another
//!   epoch than the last one, the ring is asked which epoch is the newer one.
//! * A proxy does not forward the property. Behind a proxy the ring is asked for its epoch when a
//!   number is missing or comes again. A restart is not seen if the first number that arrives after
//!   it is exactly the expected one.
//! * If the publisher has no epoch at all, a lower number than before is a restart. The number of a
//!   message that the ring has sent may be a repetition. It is a restart if the ring no longer has
//!   the highest number that it has sent.
//!
//! # Security
//!
//! The ring has the same messages as the live socket. So its sockets take the options that were
//! set with [`with`](ReliablePubBuilder::with): keys, passwords, certificates, the ZAP domain,
//! addresses and timeouts of connections. Only queues and patterns have options of their own.
//! [`with_ring`](ReliablePubBuilder::with_ring) sets more options of the ring's socket.
//! [`serve`](ReliablePub::serve) and [`connect`](ReliableSubBuilder::connect) refuse a ring that is
//! less protected than the live socket.
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::curve::KeyPair;
//! use tautline::replay::{Delivery, ReliablePub, ReliableSub, Start};
//! use tautline::{Context, zap::AllowList};
//!
//! let (context, server, alice) = (Context::new(), KeyPair::generate()?, KeyPair::generate()?);
//! context.authenticate(AllowList::new().key(alice.public, "alice"))?;
//! let mut publisher =
//!     ReliablePub::builder(&context).with(|socket| socket.curve_server(&server.secret)).build()?;
//! let (live, ring) = (publisher.bind("tcp://127.0.0.1:*")?, publisher.serve("tcp://127.0.0.1:*")?);
//! publisher.send("prices/gold", "1980")?;
//!
//! let mut subscriber = ReliableSub::builder(&context)
//!     .with(|socket| socket.curve_client(&server.public, &alice))
//!     .subscribe("prices/")
//!     .start(Start::Oldest)
//!     .connect(&live, &ring)?;
//! assert!(matches!(subscriber.recv()?, Delivery::Message(_)));
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! * What is delivered is in order, and nothing is delivered twice.
//! * A restart of the publisher is told as [`Delivery::Restarted`], before the first message of the
//!   new epoch.
//! * What is missing is asked for once, and delivered if the ring still has it. What it has not, or
//!   what does not come in time, is told as [`Delivery::Lost`].
//! * That the last messages before a silence are lost shows with the next message only.
//! * One publisher for a [`ReliableSub`]: the numbers are the publisher's.

mod protection;
mod publisher;
mod ring;
mod server;
mod subscriber;

pub use publisher::{ReliablePub, ReliablePubBuilder};
pub use subscriber::{Delivery, ReliableSub, ReliableSubBuilder, Start, Statistics, Update};

use crate::Message;

/// The number of the last answer.
const END: u64 = u64::MAX;
/// A number that no message has. A request for the messages from it on is answered with the last
/// answer alone, and so with the epoch.
const NOTHING: u64 = END - 1;

/// What the publisher changes each time it starts.
type Epoch = [u8; 8];

/// The property of a connection that shows the publisher's epoch.
const EPOCH: &str = "X-Taut-Epoch";

/// The epoch of the publisher that has sent a message, if its connection shows one.
fn epoch_of(message: &Message) -> Option<Epoch> {
    message.property(EPOCH).and_then(|text| u64::from_str_radix(text, 16).ok()).map(encode)
}

/// A number as it is sent.
fn encode(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A number as it was sent, if it is one.
fn decode(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
