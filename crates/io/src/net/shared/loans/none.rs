//! For builds that do not lend bodies. All bytes go through the ring.

use std::convert::Infallible;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use super::SharedLink;
use super::region::Region;
use super::ring::RegionWriter;
pub use crate::net::no_loan::Loan;
use crate::net::rights::PeerFd;

/// The part of a region's header for loans.
#[repr(C)]
pub(super) struct LoanArea;

/// Result of the attempt to lend a body.
#[allow(dead_code, reason = "nothing is lent in this build")]
#[derive(PartialEq)]
pub(super) enum Outcome {
    Lent,
    NoRoom,
    Copy,
}

/// Type without values.
pub(super) struct Lender(Infallible);

impl Lender {
    pub(super) fn new(_: &LoanArea) -> Option<Box<Self>> {
        None
    }

    pub(super) fn has_loans(&mut self, _: &LoanArea) -> bool {
        match self.0 {}
    }

    /// # Safety
    /// Is never called.
    pub(super) unsafe fn lend(
        &mut self,
        _: &LoanArea,
        _: BorrowedFd<'_>,
        _: u64,
        _: *const u8,
        _: usize,
    ) -> Outcome {
        match self.0 {}
    }
}

/// Type without values.
pub(super) struct Borrower(Infallible);

impl Borrower {
    pub(super) fn new(_: &LoanArea) -> Option<Box<Self>> {
        None
    }

    pub(super) fn look(&mut self, _: &LoanArea, _: BorrowedFd<'_>) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn has_loans(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn next_at(&mut self, _: &LoanArea, _: u64) -> io::Result<Option<u64>> {
        match self.0 {}
    }

    pub(super) fn length_at(&self, _: u64) -> Option<usize> {
        match self.0 {}
    }

    pub(super) fn is_copying(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn take(&mut self, _: &Arc<Region>, _: u64, _: &Arc<PeerFd>) -> io::Result<Option<Loan>> {
        match self.0 {}
    }

    /// # Safety
    /// Is never called.
    pub(super) unsafe fn copy(
        &mut self,
        _: &Arc<Region>,
        _: u64,
        _: &Arc<PeerFd>,
        _: *mut u8,
        _: usize,
    ) -> io::Result<usize> {
        match self.0 {}
    }

    pub(super) fn return_untaken(&mut self, _: &LoanArea) {
        match self.0 {}
    }
}

/// Has no effect: a link of this build lends no bodies.
pub(super) fn watch(_: Weak<SharedLink>) {}

/// Drops the writer's end, which has no loans.
pub(super) fn keep(mut writer: RegionWriter, _: OwnedFd) {
    debug_assert!(!writer.has_loans());
}
