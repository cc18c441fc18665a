//! Stores that are kept back, one for each thread at most: as on a processor with a store buffer,
//! the thread itself goes on, and reads its own value, while others still see the old one.
//!
//! Only what goes through the engine's atomics is seen here. What else makes a store visible is
//! allowed for by doing it too early rather than too late: what a thread keeps is done in each of
//! its system calls, when another thread takes the lock that this one had last, and before memory
//! that it is for is freed; all that is kept, in calls that wait or wake (what is below a `Mutex`
//! that several threads want, or a `Condvar`), and in the heavy barrier.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::world::{self, Tid};

/// Threads beyond keep nothing back.
const MOST: usize = 512;

#[derive(Clone, Copy)]
struct Store {
    to: *mut u8,
    bits: u64,
    bytes: usize,
}

struct Turned<T>(UnsafeCell<T>);

// SAFETY: only the thread whose turn it is looks at it.
unsafe impl<T> Sync for Turned<T> {}

/// How many are kept.
static COUNT: AtomicU32 = AtomicU32::new(0);
static KEPT: Turned<[Option<Store>; MOST]> = Turned(UnsafeCell::new([None; MOST]));
/// The thread that had a lock last, by the lock's address.
static OWNERS: Turned<BTreeMap<usize, Tid>> = Turned(UnsafeCell::new(BTreeMap::new()));

fn kept() -> &'static mut [Option<Store>; MOST] {
    // SAFETY: the caller has the turn, and no reference outlives a function of this module.
    unsafe { &mut *KEPT.0.get() }
}

fn owners() -> &'static mut BTreeMap<usize, Tid> {
    // SAFETY: as above.
    unsafe { &mut *OWNERS.0.get() }
}

fn own() -> Option<&'static mut Option<Store>> {
    kept().get_mut(world::me()? as usize)
}

impl Store {
    fn run(self) {
        COUNT.fetch_sub(1, SeqCst);
        // SAFETY: an atomic of this many bytes, which is not freed before (see `about_to_free`).
        unsafe {
            match self.bytes {
                1 => (*self.to.cast::<AtomicU8>()).store(self.bits as u8, SeqCst),
                2 => (*self.to.cast::<AtomicU16>()).store(self.bits as u16, SeqCst),
                4 => (*self.to.cast::<AtomicU32>()).store(self.bits as u32, SeqCst),
                _ => (*self.to.cast::<AtomicU64>()).store(self.bits, SeqCst),
            }
        }
    }
}

/// Whether this store is kept back.
pub(crate) fn keep(to: *mut u8, bits: u64, bytes: usize) -> bool {
    let is_kept = world::with(|world| world.keeps_a_store()).unwrap_or(false);
    match own() {
        Some(own) if is_kept => {
            *own = Some(Store { to, bits, bytes });
            COUNT.fetch_add(1, SeqCst);
            true
        }
        _ => false,
    }
}

/// Whether the calling thread keeps a store to another address back. One to this address is done.
pub(crate) fn keeps_other(at: *mut u8) -> bool {
    match own() {
        Some(own) if own.is_some_and(|store| store.to == at) => {
            flush();
            false
        }
        Some(own) => own.is_some(),
        None => false,
    }
}

/// Does what the calling thread keeps back.
pub(crate) fn flush() {
    if let Some(store) = own().and_then(Option::take) {
        store.run();
    }
}

/// A lock is about to be taken: does what the caller keeps back, and the thread that had it last.
pub(crate) fn before_lock(at: usize) {
    if COUNT.load(SeqCst) == 0 || world::me().is_none() {
        return;
    }
    flush();
    let owner = owners().get(&at).and_then(|owner| kept().get_mut(*owner as usize));
    if let Some(store) = owner.and_then(Option::take) {
        store.run();
    }
}

/// The caller has taken a lock.
pub(crate) fn locked(at: usize) {
    if let Some(me) = world::me()
        && world::keeps_stores()
    {
        owners().insert(at, me);
    }
}

/// Does what any thread keeps back.
pub(crate) fn flush_all() {
    if COUNT.load(SeqCst) > 0 && world::me().is_some() {
        kept().iter_mut().filter_map(Option::take).for_each(Store::run);
    }
}

/// Memory is about to be freed: does what is kept for it.
pub(crate) fn about_to_free(start: *mut u8, length: usize) {
    if COUNT.load(SeqCst) == 0 || world::me().is_none() {
        return;
    }
    let range = start as usize..start as usize + length;
    for store in kept().iter_mut() {
        if store.is_some_and(|store| range.contains(&(store.to as usize)))
            && let Some(store) = store.take()
        {
            store.run();
        }
    }
}
