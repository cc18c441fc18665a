//! The queues between a socket and a peer: chains of byte segments that hold plain ZMTP 3.1 frames.
//!
//! A chain has one producer and one consumer, each a handle that may wander between threads but is
//! used by one at a time (`&mut`):
//!
//! ```text
//! outbound:  FrameWriter (owner encodes)    -> ByteDrain   (pump hands bytes to the kernel)
//! inbound:   ByteFiller  (reader fills)     -> FrameReader (owner decodes)
//! inproc:    FrameWriter (owner encodes)    -> FrameReader (the other owner decodes)
//! ```
//!
//! The producer makes whole messages visible with one Release store of `tail`; the consumer gives
//! credit for what it is done with by a store of `head`. Both words count messages and bytes
//! together (`chain`). Finished segments travel back through a small ring (`pool`). Small bodies
//! are copied into the segments; large owned ones become a node of the chain themselves
//! (`segment`), or between two sockets travel as a pointer in the midst of the other frames
//! (`parcel`).
//!
//! Invariants, on which all `unsafe` in this folder rests:
//! - bytes and nodes before the published tail are read by the consumer only and never written
//!   again before they are recycled;
//! - bytes and nodes behind it belong to the producer, except for `next` and `end` of the last
//!   published node, which are atomic;
//! - only the consumer gives nodes up, and only those it has left; it goes to a next node only for
//!   bytes that are published;
//! - the last handle frees everything. The death of the other side is not told here: that is the
//!   business of their owners.
//!
//! Beside the chains: `log` (one chain for many connections), `slot` (ZMQ_CONFLATE: the newest
//! message only), `inbox` (news from the I/O side to a socket's owner) and `signal` (what wakes
//! it).
#![allow(unsafe_code)]

mod chain;
mod consumer;
mod drain;
mod filler;
mod inbox;
mod log;
#[cfg(all(test, loom))]
mod loom_tests;
mod parcel;
mod pool;
mod producer;
mod reader;
mod segment;
mod signal;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;
mod writer;

/// Longest message from a peer, in bytes, and most that may wait for its owner before another is
/// read: together they are what a queue's counters tell apart.
pub(crate) const LONGEST: u64 = chain::MOST_BYTES / 2;

pub(crate) use chain::{Counts, Probe};
pub(crate) use drain::ByteDrain;
pub(crate) use filler::ByteFiller;
pub(crate) use inbox::{Inbox, Unpark};
pub(crate) use log::{LONGEST as LONGEST_IN_LOG, Log, LogLength, LogReader, Progress};
pub(crate) use reader::{FrameReader, Head};
pub(crate) use signal::{Descriptor, Signal};
pub(crate) use slot::Slot;
pub(crate) use writer::{COPIED, FrameWriter, SHORT};

use chain::{Kind, Shared};
use consumer::Consumer;
use producer::Producer;

/// On the wire, bodies of at least this length travel by reference: outbound when they are owned,
/// inbound always.
#[cfg(not(loom))]
pub(crate) const BY_REFERENCE: usize = 32 * 1024;
#[cfg(loom)]
pub(crate) const BY_REFERENCE: usize = 64;

/// The same for owned bodies between two sockets of one process, where nothing copies them
/// afterwards.
pub(crate) const INPROC_BY_REFERENCE: usize = if cfg!(loom) { 64 } else { 1024 };

/// And for copied ones: the receiver may take such a body as it is. Into a caller's buffer this is
/// no slower.
const INPROC_COPY_BY_REFERENCE: usize = if cfg!(loom) { 128 } else { 16 * 1024 };

/// A queue from the owner to the kernel.
pub(crate) fn outbound() -> (FrameWriter, ByteDrain) {
    let [producer, consumer] = Shared::pair(Kind::Wire);
    (
        FrameWriter::new(Producer::new(producer), BY_REFERENCE, usize::MAX),
        ByteDrain::new(Consumer::new(consumer)),
    )
}

/// A queue from the kernel to the owner.
pub(crate) fn inbound() -> (ByteFiller, FrameReader) {
    let [producer, consumer] = Shared::pair(Kind::Wire);
    (ByteFiller::new(Producer::new(producer)), FrameReader::new(Consumer::new(consumer)))
}

/// A queue from one socket's owner to another's.
pub(crate) fn inproc() -> (FrameWriter, FrameReader) {
    let [producer, consumer] = Shared::pair(Kind::Inproc);
    let writer = FrameWriter::new(Producer::new(producer), INPROC_BY_REFERENCE, INPROC_COPY_BY_REFERENCE);
    (writer, FrameReader::new(Consumer::new(consumer)))
}
