//! Stores that are kept back, one for each thread at most: as on a processor with a store buffer,
//! the thread itself goes on, and reads its own value, while others still see the old one.
//!
//! Only what goes through the engine's atomics is seen here. What else makes a store visible is
//! allowed for by doing it too early rather than too late: all that is kept is done in every system
//! call and whenever a lock of the engine is taken, and what is kept for memory that is freed,
//! before that. The heavy barrier is a system call, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::world;

/// Threads beyond keep nothing back.
const MOST: usize = 512;

#[derive(Clone, Copy)]
struct Store {
    to: *mut u8,
    bits: u64,
    bytes: usize,
}

struct Kept(UnsafeCell<[Option<Store>; MOST]>);

// SAFETY: only the thread whose turn it is looks at it.
unsafe impl Sync for Kept {}

/// How many are kept.
static COUNT: AtomicU32 = AtomicU32::new(0);
static KEPT: Kept = Kept(UnsafeCell::new([None; MOST]));

fn kept() -> &'static mut [Option<Store>; MOST] {
    // SAFETY: the caller has the turn, and no reference outlives a function of this module.
    unsafe { &mut *KEPT.0.get() }
}

fn own() -> Option<&'static mut Option<Store>> {
    kept().get_mut(world::me()? as usize)
}

impl Store {
    fn run(self) {
        COUNT.fetch_sub(1, SeqCst);
        // SAFETY: an atomic of this many bytes, which is not freed before (see `Allocator`).
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

/// Does what any thread keeps back.
pub(crate) fn flush_all() {
    if COUNT.load(SeqCst) > 0 && world::me().is_some() {
        kept().iter_mut().filter_map(Option::take).for_each(Store::run);
    }
}

/// The system's, which does what is kept for memory before that is freed.
struct Allocator;

/// Bytes that are allocated.
static HELD: AtomicI64 = AtomicI64::new(0);

/// Bytes that are allocated, of the simulator itself, too.
pub(crate) fn held() -> i64 {
    HELD.load(SeqCst)
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn about_to_free(start: *mut u8, length: usize) {
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

// SAFETY: the system's allocator, called with the same arguments.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as i64, SeqCst);
        // SAFETY: the caller's word, here and below.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as i64, SeqCst);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        about_to_free(at, layout.size());
        HELD.fetch_sub(layout.size() as i64, SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        about_to_free(at, layout.size());
        HELD.fetch_add(size as i64 - layout.size() as i64, SeqCst);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
