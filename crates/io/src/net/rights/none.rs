//! For systems on which descriptors do not travel with bytes.

use std::io;

use super::transfer::{self, Targets};
use crate::fd::BorrowedFd;

/// Has no effect: peers cannot send descriptors.
pub(super) fn refuse(_socket: BorrowedFd<'_>) {}

/// Receives as `transfer::receive`.
pub(super) fn receive(socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    transfer::receive(socket, targets)
}
