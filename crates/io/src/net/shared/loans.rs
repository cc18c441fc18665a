//! Loans: large bodies that do not go through the ring. The reader finds them in the writer's
//! slabs (`crate::slab`), which it maps for reading.
//!
//! A loan is a part of the stream whose bytes lie elsewhere. The region's header has 64 places for
//! loans, and a lane that names the places in the order of the stream. Each place has a word of
//! state:
//!
//! | change | by | meaning |
//! |---|---|---|
//! | FREE -> LENT | writer | the bytes at this position of the stream are in a slab |
//! | LENT -> HELD | reader | it uses the bytes |
//! | HELD or LENT -> RETURNED | reader | it does not use them any more |
//! | RETURNED -> FREE, next generation | writer | the block may be freed |
//!
//! The writer hands over each slab once, through the socket at which the reader rings, and lends a
//! body only from a slab that the reader has mapped. A reader that cannot map it, or that holds too
//! many bodies, gets the bytes through the ring.
//!
//! Each end keeps its own view in its private memory. It reads an entry once, and ignores or
//! refuses a value that the other end may not write.

mod borrower;
mod caretaker;
mod exposure;
mod lease;
mod lender;
mod parted;

pub(super) use borrower::Borrower;
pub use borrower::Loan;
pub(crate) use caretaker::start as start_caretaker;
pub(super) use caretaker::watch;
pub(super) use lender::{Lender, Outcome};
pub(super) use parted::keep;

use super::atomic::{AtomicU8, AtomicU32, AtomicU64};
use super::region::Line;

/// Number of loans that the reader has not returned, at most.
const PLACES: usize = 64;
/// Number of slabs that the reader maps at the same time, at most.
const SLABS: usize = 32;

/// States of a slab, in the three lowest bits. The others are its length, a multiple of 8.
mod slab_state {
    pub(super) const NONE: u64 = 0;
    /// Writer: the descriptor was sent.
    pub(super) const OFFERED: u64 = 1;
    /// Reader: it has mapped the slab, or it will not.
    pub(super) const MAPPED: u64 = 2;
    pub(super) const REFUSED: u64 = 3;
    /// Writer: the slab is given back.
    pub(super) const DROPPED: u64 = 4;

    pub(super) const BITS: u64 = 7;
}

/// One loan. Written by the writer before the word is LENT.
#[repr(C)]
struct Place {
    /// See `lease`.
    word: AtomicU32,
    // Relaxed: behind `LoanArea::end`.
    slab: AtomicU32,
    /// Position in the stream.
    // Relaxed: behind `LoanArea::end`.
    at: AtomicU64,
    /// Position in the slab.
    // Relaxed: behind `LoanArea::end`.
    offset: AtomicU64,
    // Relaxed: behind `LoanArea::end`.
    length: AtomicU64,
}

/// The part of a region's header for loans. Zeroes are the first state.
#[repr(C)]
pub(super) struct LoanArea {
    /// Reader: not 0 if it can take loans.
    accepts: Line<AtomicU32>,
    /// Writer: number of changes of `slabs`.
    changes: AtomicU32,
    /// Writer: number of loans so far.
    end: AtomicU32,
    // Relaxed: behind `changes`.
    slabs: [AtomicU64; SLABS],
    // Relaxed: behind `end`.
    lane: [AtomicU8; PLACES],
    places: [Place; PLACES],
}

#[cfg(all(test, not(loom)))]
mod tests;
