//! Loans of connections that have ended. A reader may use a body after that.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::super::ring::RegionWriter;
use super::super::take_bells;

/// The writer's end of a connection that has ended, and the socket at which the reader rings. The
/// reader keeps its end of that socket until it has returned all loans.
struct Parted {
    writer: RegionWriter,
    reader: OwnedFd,
}

static PARTED: Mutex<Vec<Parted>> = Mutex::new(Vec::new());
/// The length of `PARTED`.
// Relaxed: look: a loan ends a little later.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Keeps the loans that the reader has not returned.
pub(in super::super) fn keep(mut writer: RegionWriter, reader: OwnedFd) {
    if writer.has_loans() {
        // The slabs of the loans keep the caretaker at work.
        let mut parted = PARTED.lock().unwrap_or_else(PoisonError::into_inner);
        parted.push(Parted { writer, reader });
        COUNT.store(parted.len(), Relaxed);
    }
    end_returned();
}

/// Ends the loans that the readers have returned, and those of readers that are gone. Returns true
/// if there are others.
pub(super) fn end_returned() -> bool {
    if COUNT.load(Relaxed) == 0 {
        return false;
    }
    // Another thread may do it already, or one of the parent may have done it at a fork.
    let Ok(mut parted) = PARTED.try_lock() else { return false };
    parted.retain_mut(|parted| parted.writer.has_loans() && take_bells(parted.reader.as_fd()));
    COUNT.store(parted.len(), Relaxed);
    !parted.is_empty()
}
