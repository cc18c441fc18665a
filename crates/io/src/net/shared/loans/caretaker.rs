//! A thread that ends returned loans and gives back idle slabs, also if a connection is silent. It
//! exists only while this process has slabs, or has mapped slabs of others.

use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Release};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use super::super::SharedLink;
use super::{borrower, parted};
use crate::{children, slab, thread, unload};

/// Time between two rounds.
const PERIOD: Duration = Duration::from_secs(1);
/// Size of the thread's stack in bytes.
const STACK: usize = 64 * 1024;

/// Links that lend or borrow.
static LINKS: Mutex<Vec<Weak<SharedLink>>> = Mutex::new(Vec::new());
/// The process whose thread is at work. A forked child has no such thread. 0 if there is none.
static AT_WORK: AtomicU32 = AtomicU32::new(0);

/// Includes a link in the rounds of the thread.
pub(in super::super) fn watch(link: Weak<SharedLink>) {
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    // Links without slabs have no rounds that remove them.
    links.retain(|link| link.strong_count() > 0);
    links.push(link);
}

/// Starts the thread, unless it is at work.
pub(crate) fn start() {
    let process = thread::process_id();
    // AcqRel: the new owner of the word sees the state that the thread has left.
    if AT_WORK.swap(process, AcqRel) == process {
        return;
    }
    // The thread must not outlive its code.
    unload::prevent();
    let work = || {
        thread::block_all_signals();
        loop {
            thread::sleep(PERIOD);
            if !tidy() {
                AT_WORK.store(0, Release);
                // A slab that came in between found the thread at work.
                if !tidy() || AT_WORK.swap(thread::process_id(), AcqRel) != 0 {
                    return;
                }
            }
        }
    };
    if thread::start("ZMQbg/Loans", STACK, work).is_err() {
        // The next slab tries again.
        AT_WORK.store(0, Release);
    }
}

/// Ends returned loans and idle slabs. Returns true if there are others that will end.
pub(super) fn tidy() -> bool {
    // In a forked child, a thread of the parent may have held the lock.
    let links = LINKS.try_lock().map(|links| links.clone()).unwrap_or_default();
    for link in links.iter().filter_map(Weak::upgrade) {
        link.tidy();
    }
    let parts = parted::end_returned();
    let children = children::sweep();
    let slabs = slab::trim();
    slabs || parts || children || borrower::has_mapped_slabs()
}
