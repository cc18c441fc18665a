//! Delayed stores, at most one for each thread. As on a processor with a store buffer, the thread
//! itself goes on and reads its own value, while others still see the old value.
//!
//! Only the engine's atomics use this module. For all other ways to make a store visible, this
//! module performs the store too early rather than too late. A thread's own store is performed in
//! each of its system calls, when another thread takes the lock that this thread held last, and
//! before the target memory is freed. All delayed stores are performed in calls that wait or wake
//! (below a contended `Mutex` or a `Condvar`) and in the heavy barrier.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::world::{self, Tid};

/// Number of threads that may delay stores. Threads with higher numbers do not.
const MOST: usize = 512;

#[derive(Clone, Copy)]
struct Store {
    to: *mut u8,
    bits: u64,
    bytes: usize,
}

struct TurnCell<T>(UnsafeCell<T>);

// SAFETY: only the thread with the turn accesses it.
unsafe impl<T> Sync for TurnCell<T> {}

/// Number of delayed stores.
static COUNT: AtomicU32 = AtomicU32::new(0);
static DELAYED: TurnCell<[Option<Store>; MOST]> = TurnCell(UnsafeCell::new([None; MOST]));
/// Last owner of each lock, by the lock's address.
static OWNERS: TurnCell<BTreeMap<usize, Tid>> = TurnCell(UnsafeCell::new(BTreeMap::new()));

fn delayed_stores() -> &'static mut [Option<Store>; MOST] {
    // SAFETY: the caller has the turn, and no reference outlives a function of this module.
    unsafe { &mut *DELAYED.0.get() }
}

fn owners() -> &'static mut BTreeMap<usize, Tid> {
    // SAFETY: as above.
    unsafe { &mut *OWNERS.0.get() }
}

fn own() -> Option<&'static mut Option<Store>> {
    delayed_stores().get_mut(world::current_thread()? as usize)
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

/// Delays this store. Returns true if it was delayed.
pub(crate) fn delay_store(to: *mut u8, bits: u64, bytes: usize) -> bool {
    let is_kept = world::with(|world| world.draw_store_delay()).unwrap_or(false);
    match own() {
        Some(own) if is_kept => {
            *own = Some(Store { to, bits, bytes });
            COUNT.fetch_add(1, SeqCst);
            true
        }
        _ => false,
    }
}

/// True if the calling thread delays a store to another address. Performs a delayed store to this
/// address.
pub(crate) fn delays_other_store(at: *mut u8) -> bool {
    match own() {
        Some(own) if own.is_some_and(|store| store.to == at) => {
            flush();
            false
        }
        Some(own) => own.is_some(),
        None => false,
    }
}

/// Performs the delayed store of the calling thread.
pub(crate) fn flush() {
    if let Some(store) = own().and_then(Option::take) {
        store.run();
    }
}

/// Called before a lock is taken. Performs the delayed stores of the caller and of the lock's last
/// owner.
pub(crate) fn before_lock(at: usize) {
    if COUNT.load(SeqCst) == 0 || world::current_thread().is_none() {
        return;
    }
    flush();
    let owner = owners().get(&at).and_then(|owner| delayed_stores().get_mut(*owner as usize));
    if let Some(store) = owner.and_then(Option::take) {
        store.run();
    }
}

/// Records that the caller has taken a lock.
pub(crate) fn locked(at: usize) {
    if let Some(me) = world::current_thread()
        && world::may_delay_stores()
    {
        owners().insert(at, me);
    }
}

/// Performs the delayed stores of all threads.
pub(crate) fn flush_all() {
    if COUNT.load(SeqCst) > 0 && world::current_thread().is_some() {
        delayed_stores().iter_mut().filter_map(Option::take).for_each(Store::run);
    }
}

/// Called before memory is freed. Performs the delayed stores to it.
pub(crate) fn about_to_free(start: *mut u8, length: usize) {
    if COUNT.load(SeqCst) == 0 || world::current_thread().is_none() {
        return;
    }
    let range = start as usize..start as usize + length;
    for store in delayed_stores().iter_mut() {
        if store.is_some_and(|store| range.contains(&(store.to as usize)))
            && let Some(store) = store.take()
        {
            store.run();
        }
    }
}
