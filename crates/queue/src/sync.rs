//! The only place from which the engine takes its atomics, cells, locks and threads: std's, or
//! loom's in a model.
//!
//! Every lock-free part of `core` imports from here, so the loom tests run the released code and
//! not a copy of it.

#[cfg(not(loom))]
mod imp {
    pub use std::sync::{Arc, Mutex, MutexGuard, RwLock};

    pub use tautline_mem::cpu::{prefetch, prefetch_to_write};
    pub use tautline_mem::thread::on_exit;

    /// The cheap half of an asymmetric store-load fence; pairs with [`barrier_heavy`].
    #[inline(always)]
    pub fn barrier_light() {
        tautline_io::barrier::light();
    }

    /// The expensive half: afterwards the stores that every thread made before its `barrier_light`
    /// are visible here, and our earlier stores are visible there.
    pub fn barrier_heavy() {
        tautline_io::barrier::heavy();
    }
}

#[cfg(loom)]
mod imp {
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
    use tautline_mem::sync::atomic;

    pub fn barrier_light() {
        atomic::fence(atomic::Ordering::SeqCst);
    }

    pub fn barrier_heavy() {
        atomic::fence(atomic::Ordering::SeqCst);
    }

    pub fn prefetch<T>(_: *const T) {}

    pub fn prefetch_to_write<T>(_: *const T) {}
}

pub use imp::*;
use std::sync::TryLockResult;
pub use tautline_mem::sync::{Padded, UnsafeCell, atomic};

/// Locks if no other thread holds the lock.
#[inline]
#[cfg_attr(simulated, track_caller)]
pub fn try_lock<T>(mutex: &Mutex<T>) -> TryLockResult<MutexGuard<'_, T>> {
    #[cfg(simulated)]
    tautline_mem::sync::simulated::before_lock(mutex);
    let guard = mutex.try_lock();
    #[cfg(simulated)]
    if guard.is_ok() {
        tautline_mem::sync::simulated::locked(mutex);
    }
    guard
}

/// Locks. If another thread panicked while it held the lock, continues with its data: an engine
/// invariant never spans a panic.
#[cfg_attr(simulated, track_caller)]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    #[cfg(simulated)]
    tautline_mem::sync::simulated::before_lock(mutex);
    let guard = match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    };
    #[cfg(simulated)]
    tautline_mem::sync::simulated::locked(mutex);
    guard
}
