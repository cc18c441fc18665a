//! Where no descriptors come along with bytes.

use std::io;

use super::transfer::{self, Targets};
use crate::fd::BorrowedFd;

/// None can be sent.
pub(super) fn refuse(_socket: BorrowedFd<'_>) {}

/// As `transfer::receive`.
pub(super) fn receive(socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    transfer::receive(socket, targets)
}
