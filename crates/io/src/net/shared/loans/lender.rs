//! The writer's end of the loans of one direction.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::super::region::{CAPACITY, Region, copy_opaquely};
use super::{LoanArea, PLACES, SLABS, lease, parted, slab_state};
use crate::fork;
use crate::lending::{self, Count};
use crate::net::transfer::{self, Sources};
use crate::slab::{self, BorrowerCount, Lease, SlabFile};

/// A reader may hold this part of the memory for slabs.
const PART_OF_READER: usize = 4;

/// After each refusal, twice as many bodies go through the ring before the next offer.
const MAX_REFUSALS: u32 = 10;

/// Result of the attempt to lend a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    Lent,
    /// The reader has not taken the loans before it. Try again after a bell.
    NoRoom,
    /// The bytes must go through the ring.
    Copy,
}

/// A loan that the reader has not returned.
struct Loan {
    /// Keeps the body.
    _lease: Lease,
    length: usize,
}

impl Drop for Loan {
    fn drop(&mut self) {
        lending::add(Count::Returned, 1);
        lending::subtract(Count::HeldBytes, self.length as u64);
    }
}

/// Counts a body that goes through the ring.
fn copy(why: Count) -> Outcome {
    lending::add(why, 1);
    Outcome::Copy
}

/// A slab that the reader knows.
struct KnownSlab {
    id: u64,
    state: u64,
}

/// The writer's end.
pub(in super::super) struct Lender {
    loans: [Option<Loan>; PLACES],
    generations: [u32; PLACES],
    slabs: [Option<KnownSlab>; SLABS],
    end: u32,
    changes: u32,
    /// Number of slabs that the reader has refused.
    refusals: u32,
    /// Number of bodies before the next offer.
    skip: u32,
    generation: u32,
    _count: BorrowerCount,
}

impl Lender {
    /// Creates a lender if the reader takes loans, and if this process can have slabs.
    pub(in super::super) fn new(area: &LoanArea) -> Option<Box<Self>> {
        (area.accepts.0.load(Acquire) != 0 && slab::start()).then(|| {
            Box::new(Lender {
                loans: [const { None }; PLACES],
                generations: [0; PLACES],
                slabs: [const { None }; SLABS],
                end: 0,
                changes: 0,
                refusals: 0,
                skip: 0,
                generation: fork::generation(),
                _count: BorrowerCount::new(),
            })
        })
    }

    /// Lends the body of `length` bytes at position `at` of the stream, after which it shows the
    /// reader all bytes before. A body that is not in a slab is first copied to one. `reader` is a
    /// socket of the reader, which takes descriptors.
    ///
    /// # Safety
    /// `body` must be valid for reads of `length` bytes.
    pub(in super::super) unsafe fn lend(
        &mut self,
        region: &Region,
        reader: BorrowedFd<'_>,
        at: u64,
        body: *const u8,
        length: usize,
    ) -> Outcome {
        let area = region.loans();
        if !lending::may_lend(length) {
            lending::count_unsuitable(length);
            return Outcome::Copy;
        }
        parted::end_returned();
        self.take_returned(area);
        let (mut held, mut waiting) = (0, 0);
        for (loan, place) in self.loans.iter().zip(&area.places) {
            if let Some(loan) = loan {
                held += loan.length;
                waiting += if lease::is_untaken(&place.word) { loan.length } else { 0 };
            }
        }
        if waiting > 0 && waiting + length > CAPACITY {
            return Outcome::NoRoom;
        }
        let Some(free) = self.loans.iter().position(Option::is_none) else { return copy(Count::NoPlace) };
        if held + length > slab::budget() / PART_OF_READER {
            return copy(Count::PeerLimit);
        }
        let lent = slab::lend(body, length).map(|lease| (lease, None));
        let lent = lent.or_else(|| slab::allocate_lent(length).map(|(lease, copy)| (lease, Some(copy))));
        let Some((lease, copied)) = lent else { return copy(Count::NoSlab) };
        let Some(slab) = self.mapped(area, reader, &lease.file) else {
            return copy(if self.skip > 0 { Count::Refused } else { Count::NotMapped });
        };
        if let Some(copied) = copied {
            // SAFETY: the caller's promise; the copy has `length` bytes, which are new. The body
            // may be a loan, whose owner may write to it at the same time. The copy then holds
            // arbitrary bytes.
            unsafe { copy_opaquely(body, copied.as_ptr(), length) };
        }
        let place = &area.places[free];
        place.slab.store(slab as u32, Relaxed);
        place.at.store(at, Relaxed);
        place.offset.store(lease.offset as u64, Relaxed);
        place.length.store(length as u64, Relaxed);
        lease::lend(&place.word, self.generations[free]);
        area.lane[self.end as usize % PLACES].store(free as u8, Relaxed);
        self.end = self.end.wrapping_add(1);
        // The reader must know the bytes before a loan. Earlier, it would read them alone, and wait
        // for a body that is copied. Release pairs with the Acquire in `RegionReader::load_tail`.
        region.header().tail.0.store(at, Release);
        // Release pairs with the Acquire in `Borrower::look`.
        area.end.store(self.end, Release);
        lending::add(Count::Lent, 1);
        lending::add(Count::HeldBytes, length as u64);
        self.loans[free] = Some(Loan { _lease: lease, length });
        Outcome::Lent
    }

    /// Ends the loans that the reader has returned.
    fn take_returned(&mut self, area: &LoanArea) {
        for ((loan, generation), place) in self.loans.iter_mut().zip(&mut self.generations).zip(&area.places)
        {
            if loan.is_some() && lease::end_returned(&place.word, generation) {
                *loan = None;
            }
        }
    }

    /// Ends returned loans, and announces slabs that were given back.
    pub(in super::super) fn tidy(&mut self, area: &LoanArea) {
        if self.generation == fork::generation() {
            self.take_returned(area);
            self.update_slabs(area);
        }
    }

    /// True if the reader may still use a body. False in a forked child, which has only a copy of
    /// the writer's end.
    pub(in super::super) fn has_loans(&mut self, area: &LoanArea) -> bool {
        if self.generation != fork::generation() {
            return false;
        }
        self.take_returned(area);
        self.loans.iter().any(Option::is_some)
    }

    /// Returns the number of this slab, if the reader has mapped it. Otherwise offers it to the
    /// reader, one slab at a time.
    fn mapped(&mut self, area: &LoanArea, reader: BorrowedFd<'_>, file: &Arc<SlabFile>) -> Option<usize> {
        self.update_slabs(area);
        let is_same = |known: &Option<KnownSlab>| known.as_ref().is_some_and(|slab| slab.id == file.id);
        if let Some(known) = self.slabs.iter().position(is_same) {
            let state = self.slabs[known].as_ref().map(|slab| slab.state);
            return (state == Some(slab_state::MAPPED)).then_some(known);
        }
        let is_offer =
            |known: &Option<KnownSlab>| known.as_ref().is_some_and(|slab| slab.state == slab_state::OFFERED);
        let free = self.slabs.iter().position(Option::is_none)?;
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.slabs.iter().any(is_offer)
            || transfer::send_with_rights(reader, &Sources::one(&[0]), &[file.as_fd()]).ok() != Some(1)
        {
            return None;
        }
        self.slabs[free] = Some(KnownSlab { id: file.id, state: slab_state::OFFERED });
        area.slabs[free].store(file.length as u64 | slab_state::OFFERED, Relaxed);
        self.changes = self.changes.wrapping_add(1);
        // Release pairs with the Acquire in `Borrower::look`.
        area.changes.store(self.changes, Release);
        None
    }

    /// Notes the reader's answers, and announces slabs that were given back.
    fn update_slabs(&mut self, area: &LoanArea) {
        for (known, shared) in self.slabs.iter_mut().zip(&area.slabs) {
            let Some(slab) = known else { continue };
            let now = shared.load(Acquire) & slab_state::BITS;
            match (slab.state, now) {
                (slab_state::OFFERED, slab_state::MAPPED) => slab.state = now,
                (slab_state::OFFERED, slab_state::REFUSED) => {
                    *known = None;
                    // Relaxed: behind `changes`.
                    shared.store(slab_state::NONE, Relaxed);
                    self.refusals = (self.refusals + 1).min(MAX_REFUSALS);
                    self.skip = 1 << self.refusals;
                }
                (slab_state::DROPPED, slab_state::NONE) => *known = None,
                (slab_state::MAPPED, _) if !slab::is_in_use(slab.id) => {
                    slab.state = slab_state::DROPPED;
                    // Relaxed: behind `changes`.
                    shared.store(slab_state::DROPPED, Relaxed);
                    self.changes = self.changes.wrapping_add(1);
                    area.changes.store(self.changes, Release);
                }
                _ => {}
            }
        }
    }
}
