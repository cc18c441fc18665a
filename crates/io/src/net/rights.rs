//! Descriptors that a peer sends along with its bytes (unix(7), SCM_RIGHTS): kept out where none
//! are wanted, and otherwise closed where that holds nothing up.
//!
//! Anything may be behind such a descriptor, and most calls on it can take as long as its sender
//! likes: they wait for a lock that it holds in a page fault, for the daemon of its file system, or
//! for data that is not taken from its socket, which lingers. So a descriptor is looked at with
//! calls that take no lock ([`Foreign`] says which), and closed by a thread of its own. What the
//! system closes because it was not received, it closes on the thread that reads: a socket that
//! shares nothing refuses descriptors (SO_PASSRIGHTS, Linux 6.16), and before that kernel all of
//! them are received, in order to be closed elsewhere.

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
use crate::thread;

/// There are sockets that the system could not be told to refuse descriptors at.
// Relaxed: behind whatever gave the reading thread the socket, which was refused first.
static COME_IN: AtomicBool = AtomicBool::new(false);

/// From now on no peer can send a descriptor to this Unix domain socket, where the system has such
/// a thing.
pub(super) fn refuse(socket: BorrowedFd<'_>) {
    if os::pass_rights(socket, false).is_err() {
        COME_IN.store(true, Relaxed);
    }
}

/// Whether the system does that.
#[cfg(all(test, linux_kernel, not(loom)))]
pub(super) fn are_refused() -> bool {
    !COME_IN.load(Relaxed)
}

/// Returns when no descriptor waits to be closed.
#[cfg(all(test, not(loom)))]
pub(super) fn wait_until_closed() {
    while WAITING.load(Relaxed) > 0 {
        std::thread::yield_now();
    }
}

/// Ends that.
#[cfg(linux_kernel)]
pub(super) fn admit(socket: BorrowedFd<'_>) {
    // Where it cannot be done the peer's descriptors do not arrive, which is an answer as well.
    let _ = os::pass_rights(socket, true);
}

/// Receives as `transfer::receive`, from a Unix domain socket. Descriptors that come along are
/// closed.
pub(super) fn receive(socket: BorrowedFd<'_>, targets: &Targets<'_>) -> io::Result<usize> {
    match COME_IN.load(Relaxed) {
        true => receive_all(socket, targets).map(|(n, _)| n),
        false => transfer::receive(socket, targets),
    }
}

/// The same with the descriptors.
pub(super) fn receive_all(
    socket: BorrowedFd<'_>,
    targets: &Targets<'_>,
) -> io::Result<(usize, Vec<Foreign>)> {
    // Too many wait to be closed: the system has to close these.
    if WAITING.load(Relaxed) >= MOST_WAITING {
        return transfer::receive(socket, targets).map(|n| (n, Vec::new()));
    }
    transfer::receive_with_rights(socket, targets)
}

/// A descriptor from a peer. Nothing but these methods is used on it, until
/// [`is_stream`](Self::is_stream) has said that it is a socket that can be written to, or
/// `shared/region.rs` that it is memory.
pub(super) struct Foreign(ManuallyDrop<File>);

impl Foreign {
    /// Whether it is a Unix domain stream socket, to which a write waits for nothing. SO_TYPE and
    /// SO_DOMAIN are read without the socket's lock (but for a control group whose calls a BPF
    /// program of the administrator's looks at, for which the system takes it).
    #[cfg(linux_kernel)]
    pub(super) fn is_stream(&self) -> bool {
        adopt::family_of(self.as_fd()).is_ok_and(|family| family == Family::Unix)
    }

    /// Of the system's memory: whether it is `length` bytes long. To read it takes no lock of the
    /// file, which fstat did in some kernels, and which seeking does.
    #[cfg(linux_kernel)]
    pub(super) fn has_length(&self, length: u64) -> bool {
        let reads = |at, wanted| self.0.read_at(&mut [0], at).is_ok_and(|n| n == wanted);
        length.checked_sub(1).is_some_and(|last| reads(last, 1)) && reads(length, 0)
    }
}

impl From<OwnedFd> for Foreign {
    fn from(fd: OwnedFd) -> Self {
        Foreign(ManuallyDrop::new(fd.into()))
    }
}

impl AsFd for Foreign {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: not used again.
        close_elsewhere(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

// ---- closing

/// Descriptors that wait to be closed until no more are received: as many as come at once. So at
/// most twice as many are open.
const MOST_WAITING: usize = MOST_RECEIVED;
/// Bytes of the thread's stack.
const STACK: usize = 64 * 1024;

/// Those that wait, and the one that is being closed.
// Relaxed: number: how many wait to be closed.
static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Closer {
    files: Vec<File>,
    /// The process whose thread closes them; the child of a fork has none.
    at_work: Option<u32>,
}

static CLOSER: Mutex<Closer> = Mutex::new(Closer { files: Vec::new(), at_work: None });

fn closer() -> MutexGuard<'static, Closer> {
    CLOSER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a thread close it, which ends with the last one. Where no thread can be had, this one closes
/// it.
fn close_elsewhere(file: File) {
    let mut closer = closer();
    WAITING.fetch_add(1, Relaxed);
    closer.files.push(file);
    let process = thread::process_id();
    if closer.at_work == Some(process) {
        return;
    }
    closer.at_work = Some(process);
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        thread::block_all_signals();
        thread::set_name("ZMQbg/Close");
        close_all();
    });
    drop(closer);
    if thread.is_err() {
        close_all();
    }
}

/// Closes what waits, until nothing does.
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
        // It may linger. To take that away from it would need the socket's lock, for which this
        // thread could not even be killed.
        drop(file);
        WAITING.fetch_sub(1, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
