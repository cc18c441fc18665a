//! Forked children that may still read memory of this process.
//!
//! A child has a copy of its parent's private memory, but not of memory that the parent shares with
//! other processes: there it sees later bytes. So a body in shared memory stays as it is while a
//! child may read it: a child that was forked while the parent had the body, and that has neither
//! ended nor called exec. [`Use::keep`] delays the end of a body.
//!
//! Before a fork of a process that has such bodies ([`Use`]), the parent maps a page of new memory
//! for writing. Only the child keeps this mapping, until it ends or calls exec. The system shows if
//! the mapping exists: the memory cannot be sealed against writing then. The child may close all
//! its descriptors. Its own children inherit the mapping.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys::check;
use crate::{fork, libc, memfd};

/// Size of the page that a child maps.
const PAGE: usize = 4096;

/// A child, and its children.
struct Child {
    /// Number of the fork.
    number: u64,
    /// Memory that the child maps. `None` if there was no memory or descriptor at the fork: such a
    /// child counts for ever.
    page: Option<OwnedFd>,
}

/// A value to drop once the children are gone that were forked after `since`, and not after
/// `until`.
struct Kept {
    since: u64,
    until: u64,
    _value: Box<dyn Send>,
}

#[derive(Default)]
struct State {
    children: Vec<Child>,
    kept: Vec<Kept>,
}

/// The state of this process. Null at first, and in a new child: a thread of the parent may have
/// held the lock.
static STATE: AtomicPtr<Mutex<State>> = AtomicPtr::new(null_mut());
/// Number of forks while bodies were in use.
// Relaxed: number: a thread that uses a body did so before the fork, or the child has no such body.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// Number of the newest fork whose child may live. 0 if there is none.
static NEWEST: AtomicU64 = AtomicU64::new(0);
/// Number of bodies in use.
// Relaxed: number, as `FORKS`.
static USES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The page that this thread has mapped for the child that it forks, and its descriptor.
    static PREPARED: Cell<(*mut libc::c_void, RawFd)> = const { Cell::new((null_mut(), -1)) };
}

/// The use of a body in memory that other processes share.
#[derive(Debug)]
pub(crate) struct Use {
    since: u64,
    generation: u32,
}

impl Use {
    pub(crate) fn new() -> Self {
        // Relaxed: number: one thread registers, and a fork by another one may precede it.
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.swap(true, Relaxed) {
            fork::start_counting();
            fork::call_around(prepare, end_in_parent, begin_in_child);
        }
        USES.fetch_add(1, Relaxed);
        Use { since: FORKS.load(Relaxed), generation: fork::generation() }
    }

    /// False in a forked child, which has only a copy of this value.
    pub(crate) fn is_own(&self) -> bool {
        self.generation == fork::generation()
    }

    /// True if a child may read the body.
    pub(crate) fn is_inherited(&self) -> bool {
        // Acquire pairs with the Release of `prepare`.
        NEWEST.load(Acquire) > self.since
    }

    /// Drops `value` once no child can read the body.
    pub(crate) fn keep<T: Send + 'static>(&self, value: T) {
        if self.is_inherited() {
            let kept = Kept { since: self.since, until: FORKS.load(Relaxed), _value: Box::new(value) };
            lock().kept.push(kept);
            sweep();
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.is_own() {
            USES.fetch_sub(1, Relaxed);
        }
    }
}

fn lock() -> MutexGuard<'static, State> {
    let mut state = STATE.load(Acquire);
    if state.is_null() {
        let new = Box::into_raw(Box::default());
        state = match STATE.compare_exchange(null_mut(), new, AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: no other thread has it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: a pointer from above, which is never freed.
    unsafe { &*state }.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the kept values whose children are gone. Returns true if there are children left.
pub(crate) fn sweep() -> bool {
    if NEWEST.load(Acquire) == 0 {
        return false;
    }
    let mut state = lock();
    state.children.retain(Child::is_alive);
    let newest = state.children.iter().map(|child| child.number).max().unwrap_or(0);
    // Release: for the Acquire of `is_inherited`. Changed only under the lock.
    NEWEST.store(newest, Release);
    let State { children, kept } = &mut *state;
    let is_over = |kept: &mut Kept| {
        !children.iter().any(|child| child.number > kept.since && child.number <= kept.until)
    };
    let over: Vec<Kept> = kept.extract_if(.., is_over).collect();
    // The end of a value may take other locks, or keep another value.
    drop(state);
    drop(over);
    newest > 0
}

impl Child {
    /// True if the child or one of its children maps the page.
    fn is_alive(&self) -> bool {
        let Some(page) = &self.page else { return true };
        // SAFETY: the descriptor is open; integers only.
        check(unsafe { libc::fcntl(page.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) }).is_err()
    }
}

/// Maps a new page for writing.
fn map_page() -> io::Result<(OwnedFd, *mut libc::c_void)> {
    let memory = memfd::create(PAGE)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at any free address.
    let page = unsafe { libc::mmap(null_mut(), PAGE, access, libc::MAP_SHARED, memory.as_raw_fd(), 0) };
    if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok((memory, page)) }
}

/// Before a fork.
extern "C" fn prepare() {
    if USES.load(Relaxed) == 0 {
        return;
    }
    let number = FORKS.fetch_add(1, Relaxed) + 1;
    let (page, prepared) = match map_page() {
        Ok((memory, page)) => {
            let fd = memory.as_raw_fd();
            (Some(memory), (page, fd))
        }
        Err(_) => (None, (null_mut(), -1)),
    };
    PREPARED.set(prepared);
    let mut state = lock();
    state.children.push(Child { number, page });
    // Release pairs with the Acquire of `is_inherited`: a body that ends from now on is kept.
    NEWEST.fetch_max(number, Release);
}

/// After a fork, in the parent. Also after a fork that has failed.
extern "C" fn end_in_parent() {
    let (page, _) = PREPARED.replace((null_mut(), -1));
    if !page.is_null() {
        // SAFETY: mapped by `prepare` in this thread, for the child only.
        unsafe { libc::munmap(page, PAGE) };
    }
}

/// After a fork, in the child. Takes no lock.
extern "C" fn begin_in_child() {
    let (_, fd) = PREPARED.replace((null_mut(), -1));
    if fd >= 0 {
        // SAFETY: opened by `prepare`. The parent's value of it stays in the parent's state, which
        // the child leaves alone. The mapping lasts.
        unsafe { libc::close(fd) };
    }
    STATE.store(null_mut(), Release);
    // Release: as in `sweep`.
    NEWEST.store(0, Release);
    USES.store(0, Relaxed);
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
