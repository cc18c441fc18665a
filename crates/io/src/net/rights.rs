//! Descriptors that a peer sends along with its bytes (unix(7), SCM_RIGHTS). A socket that expects
//! no descriptors refuses them. All other unwanted descriptors are closed where a slow close delays
//! no other work.
//!
//! Any object may be behind such a descriptor, and most calls on it can take as long as its sender
//! likes. A call may wait for a lock that the sender holds in a page fault, for the daemon of the
//! sender's file system, or for a lingering socket whose data the sender never reads. Therefore we
//! inspect a descriptor only with calls that take no lock (see [`PeerFd`]), and a separate thread
//! closes it. If a descriptor is not received, the system closes it on the reading thread. A socket
//! that shares no memory therefore refuses descriptors (SO_PASSRIGHTS, Linux 6.16). On older
//! kernels we receive all descriptors in order to close them on the other thread.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
#[cfg(linux_kernel)]
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::os;
use super::transfer::{self, MOST_RECEIVED, Targets};
#[cfg(linux_kernel)]
use super::{Family, adopt};
use crate::fd::{AsFd, BorrowedFd, OwnedFd};
#[cfg(linux_kernel)]
use crate::memfd;
use crate::thread;

/// True if the system could not make some socket refuse descriptors.
// Relaxed: behind the hand-over of the socket to the reading thread, which follows `refuse`.
static ACCEPTS_RIGHTS: AtomicBool = AtomicBool::new(false);

/// Stops peers from sending descriptors to this Unix domain socket, if the system supports that.
pub(super) fn refuse(socket: BorrowedFd<'_>) {
    if os::pass_rights(socket, false).is_err() {
        ACCEPTS_RIGHTS.store(true, Relaxed);
    }
}

/// True if the system refuses descriptors.
#[cfg(all(test, linux_kernel, not(loom)))]
pub(super) fn are_refused() -> bool {
    !ACCEPTS_RIGHTS.load(Relaxed)
}

/// Waits until all received descriptors are closed.
#[cfg(all(test, not(loom)))]
pub(super) fn wait_until_closed() {
    while WAITING.load(Relaxed) > 0 {
        std::thread::yield_now();
    }
}

/// Allows descriptors again.
#[cfg(linux_kernel)]
pub(super) fn allow(socket: BorrowedFd<'_>) {
    // If the system cannot allow them, the peer's descriptors do not arrive, which the peer takes
    // for an answer.
    let _ = os::pass_rights(socket, true);
}

/// Receives as `transfer::receive`, from a Unix domain socket. Closes descriptors that come along.
pub(super) fn receive(socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    match ACCEPTS_RIGHTS.load(Relaxed) {
        true => receive_all(socket, targets).map(|(n, _)| n),
        false => transfer::receive(socket, targets),
    }
}

/// Receives bytes and the descriptors that come along.
pub(super) fn receive_all(socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<(usize, Vec<PeerFd>)> {
    // Too many descriptors wait to be closed, so the system has to close these.
    if WAITING.load(Relaxed) >= MOST_WAITING {
        return transfer::receive(socket, targets).map(|n| (n, Vec::new()));
    }
    transfer::receive_with_rights(socket, targets)
}

/// A descriptor from a peer. Only these methods may use it, until [`is_stream`](Self::is_stream)
/// has shown that it is a writable socket, or `shared/region.rs` that it is memory.
pub(super) struct PeerFd(ManuallyDrop<File>);

impl PeerFd {
    /// True if this is a Unix domain stream socket, on which a write never waits. The kernel reads
    /// SO_TYPE and SO_DOMAIN without the socket's lock. (It takes the lock only in a control group
    /// with a BPF program that inspects such calls.)
    #[cfg(linux_kernel)]
    pub(super) fn is_stream(&self) -> bool {
        adopt::family_of(self.as_fd()).is_ok_and(|family| family == Family::Unix)
    }

    /// True if this file in the system's memory has `length` bytes. Reading takes no lock of the
    /// file, in contrast to fstat on some kernels and to seeking.
    #[cfg(linux_kernel)]
    pub(super) fn has_length(&self, length: u64) -> bool {
        let reads = |at, wanted| self.0.read_at(&mut [0], at).is_ok_and(|n| n == wanted);
        length.checked_sub(1).is_some_and(|last| reads(last, 1)) && reads(length, 0)
    }

    /// Returns the device and the inode of a file that was found to be in the system's memory.
    #[cfg(linux_kernel)]
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        memfd::identity(&self.0)
    }
}

impl From<OwnedFd> for PeerFd {
    fn from(fd: OwnedFd) -> Self {
        PeerFd(ManuallyDrop::new(fd.into()))
    }
}

impl AsFd for PeerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for PeerFd {
    fn drop(&mut self) {
        // SAFETY: not used again.
        close_elsewhere(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

// ---- closing

/// Most descriptors that may wait to be closed before we stop receiving more. Equals the most that
/// come at once, so at most twice as many are open.
const MOST_WAITING: usize = MOST_RECEIVED;
/// Size of the closing thread's stack in bytes.
const STACK: usize = 64 * 1024;

/// Number of descriptors that wait to be closed, including the one that is being closed.
// Relaxed: number: a count of descriptors.
static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Closer {
    files: Vec<File>,
    /// Process whose thread closes the descriptors. The child of a fork has no such thread.
    at_work: Option<u32>,
}

static CLOSER: Mutex<Closer> = Mutex::new(Closer { files: Vec::new(), at_work: None });

fn closer() -> MutexGuard<'static, Closer> {
    CLOSER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes the file to the closing thread, which ends after the last file. If no thread can be
/// started, the calling thread closes the file.
fn close_elsewhere(file: File) {
    let mut closer = closer();
    WAITING.fetch_add(1, Relaxed);
    closer.files.push(file);
    let process = thread::process_id();
    if closer.at_work == Some(process) {
        return;
    }
    closer.at_work = Some(process);
    let thread = thread::start("ZMQbg/Close", STACK, || {
        thread::block_all_signals();
        close_all();
    });
    drop(closer);
    if thread.is_err() {
        close_all();
    }
}

/// Closes waiting files until the list is empty.
fn close_all() {
    loop {
        let next = {
            let mut closer = closer();
            let next = closer.files.pop();
            if next.is_none() {
                closer.at_work = None;
            }
            next
        };
        let Some(file) = next else { return };
        // The socket may linger. Switching that off would need the socket's lock, and a thread that
        // waits for that lock cannot even be killed.
        drop(file);
        WAITING.fetch_sub(1, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
