//! The queues between a socket and a peer: chains of byte segments that hold plain ZMTP 3.1 frames.
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
//! Invariants, on which all `unsafe` in this folder rests:
//! - Bytes and nodes before the published tail are read only by the consumer and never written
//!   again before they are recycled.
//! - Bytes and nodes behind it belong to the producer, except for `next` and `end` of the last
//!   published node, which are atomic.
//! - Only the consumer releases nodes, and only nodes that it has left. The consumer goes to a next
//!   node only for published bytes.
//! - The last handle frees everything. The chain does not report the end of the other side; the
//!   owners do that.
//!
//! Other modules: `log` (one chain for many connections), `latest` (ZMQ_CONFLATE: only the newest
//! message), `inbox` (news from the I/O side to a socket's owner) and `signal` (wakes the owner).
#![allow(unsafe_code)]

mod chain;
mod consumer;
mod drain;
mod filler;
mod inbox;
mod latest;
mod log;
#[cfg(all(test, loom))]
mod loom_tests;
mod parcel;
mod producer;
mod reader;
mod recycle;
mod segment;
mod signal;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

/// Limit in bytes for a message from a peer, and for the bytes that may wait for its owner before
/// another message is read. Together they are the range of a queue's counters.
pub(crate) const LONGEST: u64 = chain::MOST_BYTES / 2;

pub(crate) use chain::{ChainCounts, Probe};
pub(crate) use drain::ByteDrain;
pub(crate) use filler::ByteFiller;
pub(crate) use inbox::{Inbox, Unpark};
pub(crate) use latest::LatestMessage;
pub(crate) use log::{LONGEST as LONGEST_IN_LOG, Log, LogLength, LogReader, Progress};
pub(crate) use reader::{FrameHead, FrameReader};
pub(crate) use signal::{Descriptor, Signal};
pub(crate) use writer::{COPIED, FrameWriter, SHORT};

use chain::{ChainKind, SharedChain};
use consumer::Consumer;
use producer::Producer;

/// On the wire, bodies of at least this length travel by reference: outbound if they are owned,
/// inbound always.
#[cfg(not(loom))]
pub(crate) const BY_REFERENCE: usize = 32 * 1024;
#[cfg(loom)]
pub(crate) const BY_REFERENCE: usize = 64;

/// Between two sockets of one process, owned bodies of at least this length travel by reference. No
/// later step copies these bodies.
pub(crate) const INPROC_BY_REFERENCE: usize = if cfg!(loom) { 64 } else { 1024 };

/// Between two sockets of one process, copied bodies of at least this length travel by reference.
/// The receiver may take such a body without another copy. Copying it into a caller's buffer is not
/// slower.
const INPROC_COPY_BY_REFERENCE: usize = if cfg!(loom) { 128 } else { 16 * 1024 };

/// Returns a queue from the owner to the kernel.
pub(crate) fn outbound() -> (FrameWriter, ByteDrain) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Wire);
    (
        FrameWriter::new(Producer::new(producer), BY_REFERENCE, usize::MAX),
        ByteDrain::new(Consumer::new(consumer)),
    )
}

/// Returns a queue from the kernel to the owner.
pub(crate) fn inbound() -> (ByteFiller, FrameReader) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Wire);
    (ByteFiller::new(Producer::new(producer)), FrameReader::new(Consumer::new(consumer)))
}

/// Returns a queue from one socket's owner to another's.
pub(crate) fn inproc() -> (FrameWriter, FrameReader) {
    let [producer, consumer] = SharedChain::pair(ChainKind::Inproc);
    let writer = FrameWriter::new(Producer::new(producer), INPROC_BY_REFERENCE, INPROC_COPY_BY_REFERENCE);
    (writer, FrameReader::new(Consumer::new(consumer)))
}
