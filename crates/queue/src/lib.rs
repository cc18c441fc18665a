//! Everything that two threads of the engine share: messages, the queues between a socket and a
//! peer, and the handoff of work between threads. This crate knows neither sockets nor connections.
//!
//! ```text
//!   message   one message part and its memory
//!   handoff   news, wake-ups and turns between a socket's owner and an I/O thread
//!   sync      the atomics, cells and locks of the engine: std's, or loom's in a model
//! ```
//!
//! All unsafe code of the engine above `tautline-io` and `tautline-mem` is here, and so are its
//! loom models. The crate root has the queues: chains of byte segments that hold plain ZMTP 3.1
//! frames.
//!
//! A chain has one producer and one consumer. Each is a handle that may move between threads but is
//! used by one thread at a time (`&mut`):
//!
//! ```text
//! outbound:  FrameWriter (owner encodes)    -> ByteDrain   (pump hands bytes to the kernel)
//! inbound:   ByteFiller  (reader fills)     -> FrameReader (owner decodes)
//! inproc:    FrameWriter (owner encodes)    -> FrameReader (the other owner decodes)
//! ```
//!
//! The producer makes whole messages visible with one Release store of `tail`. The consumer credits
//! finished messages with a store of `head`. Both words count messages and bytes together
//! (`chain`). Finished segments travel back through a small ring (`recycle`). Small bodies are
//! copied into the segments. Large owned bodies become a node of the chain (`segment`), or between
//! two sockets travel as a pointer between the other frames (`parcel`).
//!
//! Invariants, on which all `unsafe` of the queues rests:
//! - Bytes and nodes before the published tail are read only by the consumer and never written
//!   again before they are recycled.
//! - Bytes and nodes behind it belong to the producer, except for `next` and `end` of the last
//!   published node, which are atomic.
//! - Only the consumer releases nodes, and only nodes that it has left. The consumer goes to a next
//!   node only for published bytes.
//! - The last handle frees everything. The chain does not report the end of the other side; the
//!   owners do that.
//!
//! Other modules: `log` (one chain for many connections) and `latest` (ZMQ_CONFLATE: only the
//! newest message).

#![warn(unreachable_pub)]
// An internal crate: no caller needs these.
#![allow(clippy::new_without_default, clippy::len_without_is_empty)]
// The models run parts of the crate without their users.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

pub mod handoff;
pub mod message;
pub mod sync;

mod chain;
mod consumer;
mod drain;
mod filler;
mod latest;
mod log;
#[cfg(all(test, loom))]
mod loom_tests;
mod parcel;
mod producer;
mod reader;
mod recycle;
mod segment;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

/// Limit in bytes for a message from a peer, and for the bytes that may wait for its owner before
/// another message is read. Together they are the range of a queue's counters.
pub const LONGEST: u64 = chain::MOST_BYTES / 2;

pub use chain::{ChainCounts, Probe};
pub use drain::ByteDrain;
pub use filler::ByteFiller;
pub use latest::LatestMessage;
pub use log::{LONGEST as LONGEST_IN_LOG, Log, LogLength, LogReader, Progress};
pub use reader::{FrameHead, FrameReader};
pub use writer::{COPIED, FrameWriter, SHORT};

use chain::{ChainKind, SharedChain};
use consumer::Consumer;
use producer::Producer;

/// On the wire, bodies of at least this length travel by reference: outbound if they are owned,
/// inbound always.
#[cfg(not(loom))]
pub const BY_REFERENCE: usize = 32 * 1024;
#[cfg(loom)]
pub const BY_REFERENCE: usize = 64;

/// Between two sockets of one process, owned bodies of at least this length travel by reference. No
/// later step copies these bodies.
pub const INPROC_BY_REFERENCE: usize = if cfg!(loom) { 64 } else { 1024 };

/// Between two sockets of one process, copied bodies of at least this length travel by reference.
/// The receiver may take such a body without another copy. Copying it into a caller's buffer is not
/// slower.
const INPROC_COPY_BY_REFERENCE: usize = if cfg!(loom) { 128 } else { 16 * 1024 };

/// Returns a queue from the owner to the kernel.
pub fn outbound() -> (FrameWriter, ByteDrain) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Wire);
    (
        FrameWriter::new(Producer::new(producer), BY_REFERENCE, usize::MAX),
        ByteDrain::new(Consumer::new(consumer)),
    )
}

/// Returns a queue from the kernel to the owner.
pub fn inbound() -> (ByteFiller, FrameReader) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Wire);
    (ByteFiller::new(Producer::new(producer)), FrameReader::new(Consumer::new(consumer)))
}

/// Returns a queue from one socket's owner to another's.
pub fn inproc() -> (FrameWriter, FrameReader) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Inproc);
    let writer = FrameWriter::new(Producer::new(producer), INPROC_BY_REFERENCE, INPROC_COPY_BY_REFERENCE);
    (writer, FrameReader::new(Consumer::new(consumer)))
}
