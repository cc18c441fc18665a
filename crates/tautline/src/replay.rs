//! PUB/SUB that detects lost messages and requests them again.
//!
//! A SUB misses messages if it joins late, reads too slowly or loses its connection, and it does
//! not notice. [`ReliablePub`] numbers its messages and keeps the last ones in memory.
//! [`ReliableSub`] checks the numbers, requests missing messages, and reports those that are no
//! longer available.
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
//! // The subscriber joins late, and begins with the oldest kept message.
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
//! For tasks, [`ReliablePub::into_async`] and [`ReliableSub::into_async`] convert both ends.
//!
//! # On the wire
//!
//! A message has three parts: the topic, its number in 8 bytes (big-endian), the body. Any SUB can
//! read it. The ring is a ROUTER. A request is one part, the first number in 8 bytes, after an
//! empty part, as a REQ or a DEALER with a delimiter sends it. Each answer is an empty part, the
//! topic, the number and the body, from the oldest to the newest message. The last answer has the
//! number 2⁶⁴ − 1 and an empty body. vLLM's publisher of KV-cache events uses the same protocol
//! from version 0.26 on. (Older versions send no topic in their answers; a [`ReliableSub`] accepts
//! these answers with an empty topic.)
//!
//! The *epoch* of a publisher is 8 bytes that change each time the publisher starts. It is the
//! topic of the last answer. Both sockets of the publisher also show it to their peers, as the
//! property `X-Taut-Epoch` of their connections (16 hexadecimal digits). With it a [`ReliableSub`]
//! sees a restart, after which the numbers begin with 0 again:
//!
//! * By the property, each message shows its epoch. If a live message has another epoch than the
//!   last one, the subscriber asks the ring which epoch is newer.
//! * A proxy does not forward the property. Behind a proxy, the subscriber asks the ring for its
//!   epoch when a number is missing or repeated. A restart stays unnoticed if the first number that
//!   arrives after it is exactly the expected one.
//! * If the publisher has no epoch at all, a lower number than before means a restart. A number
//!   that the ring has already sent may be a repetition. It means a restart if the ring no longer
//!   has the highest number that it sent.
//!
//! # Security
//!
//! The ring has the same messages as the live socket. Therefore its sockets use the options that
//! were set by [`with_socket`](ReliablePubBuilder::with_socket): keys, passwords, certificates, the
//! ZAP domain, addresses and connection timeouts. Options of queues and patterns are separate.
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
//!     ReliablePub::builder(&context).with_socket(|socket| socket.curve_server(&server.secret)).build()?;
//! let (live, ring) = (publisher.bind("tcp://127.0.0.1:*")?, publisher.serve("tcp://127.0.0.1:*")?);
//! publisher.send("prices/gold", "1980")?;
//!
//! let mut subscriber = ReliableSub::builder(&context)
//!     .with_socket(|socket| socket.curve_client(&server.public, &alice))
//!     .subscribe("prices/")
//!     .start(Start::Oldest)
//!     .connect(&live, &ring)?;
//! assert!(matches!(subscriber.recv()?, Delivery::Message(_)));
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! * Messages are delivered in order, and never twice.
//! * A restart of the publisher is reported as [`Delivery::Restarted`], before the first message of
//!   the new epoch.
//! * Missing messages are requested once, and delivered if the ring still has them. Messages that
//!   are unavailable or late are reported as [`Delivery::Lost`].
//! * If the last messages before a pause are lost, only the next message reveals the loss.
//! * A [`ReliableSub`] has one publisher, because the numbers belong to the publisher.

mod protection;
mod publisher;
mod ring;
mod server;
mod subscriber;

pub use publisher::{ReliablePub, ReliablePubBuilder};
pub use subscriber::{Delivery, ReliableSub, ReliableSubBuilder, Start, Statistics, Update};

use crate::Message;

/// Number of the last answer.
const END_NUMBER: u64 = u64::MAX;
/// A number that no message has. A request from this number on only gets the last answer, and with
/// it the epoch.
const EPOCH_ONLY: u64 = END_NUMBER - 1;

/// Id that changes each time the publisher starts.
type Epoch = [u8; 8];

/// Connection property with the publisher's epoch.
const EPOCH: &str = "X-Taut-Epoch";

/// Returns the epoch of a message's publisher, if its connection has that property.
fn epoch_of(message: &Message) -> Option<Epoch> {
    message.property(EPOCH).and_then(|text| u64::from_str_radix(text, 16).ok()).map(encode)
}

/// Encodes a number for the wire.
fn encode(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Decodes a number; `None` if it is malformed.
fn decode(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
