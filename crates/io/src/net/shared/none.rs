//! For systems without memory that can be sealed and handed over. Streams work without it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

pub use super::no_loan::Loan;
use super::transfer::{Sources, Targets};
use crate::fd::BorrowedFd;

/// Type without values.
#[derive(Debug)]
pub(super) struct SharedLink(Infallible);

impl SharedLink {
    pub(super) fn new() -> Option<Arc<Self>> {
        None
    }

    pub(super) fn begin(&self, _: BorrowedFd<'_>, _: bool) {
        match self.0 {}
    }

    pub(super) fn read(&self, _: BorrowedFd<'_>, _: &Targets<'_>) -> io::Result<usize> {
        match self.0 {}
    }

    pub(super) fn write(&self, _: BorrowedFd<'_>, _: &Sources<'_>) -> io::Result<usize> {
        match self.0 {}
    }

    pub(super) fn takes_from_memory(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn request_wakeup(&self, _: BorrowedFd<'_>) -> bool {
        match self.0 {}
    }

    pub(super) fn request_wakeup_again(&self, _: BorrowedFd<'_>) -> bool {
        match self.0 {}
    }

    pub(super) fn space_fd(&self) -> Option<BorrowedFd<'_>> {
        match self.0 {}
    }

    pub(super) fn lends(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn adopt_loans(&self) {
        match self.0 {}
    }

    pub(super) fn take_loan(&self, _: impl FnOnce(usize) -> bool) -> io::Result<Option<Loan>> {
        match self.0 {}
    }
}

/// No error of this system has this number.
pub(super) const LOAN_AHEAD: std::ffi::c_int = -1;
