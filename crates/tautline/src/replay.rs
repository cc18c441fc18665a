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
//! The topic of the last answer is the publisher's *epoch*, 8 bytes that another life of the
//! publisher does not have. A [`ReliableSub`] asks for it when it begins and before it asks for
//! what is missing. So it tells a publisher that has begun anew, and counts from 0 again, from one
//! whose messages were lost. Of a publisher without an epoch it takes a lower number for a new
//! beginning.
//!
//! # What is promised
//!
//! * What is delivered is in order, and nothing is delivered twice.
//! * What is missing is asked for once, and delivered if the ring still has it. What it has not, or
//!   what does not come in time, is told as [`Delivery::Lost`].
//! * That the last messages before a silence are lost shows with the next message only.
//! * One publisher for a [`ReliableSub`]: the numbers are the publisher's.

mod publisher;
mod ring;
mod server;
mod subscriber;

pub use publisher::{ReliablePub, ReliablePubBuilder};
pub use subscriber::{Delivery, ReliableSub, ReliableSubBuilder, Start, Statistics, Update};

/// The number of the last answer.
const END: u64 = u64::MAX;
/// A number that no message has. A request for the messages from it on is answered with the last
/// answer alone, and so with the epoch.
const NOTHING: u64 = END - 1;

/// A number as it is sent.
fn encode(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A number as it was sent, if it is one.
fn decode(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
