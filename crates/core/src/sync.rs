//! The one place where the engine gets its atomics, cells, locks and threads from: std's, or loom's
//! in a model.
//!
//! Every lock-free part of `core` imports from here, so that the loom tests run the code that ships
//! and not a copy of it.

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::sync::atomic;
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock};

    /// `UnsafeCell` with loom's closure interface, free of cost.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    #[allow(dead_code)]
    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    pub(crate) use tautline_io::cpu::{prefetch, prefetch_to_write, thread_pointer};
    pub(crate) use tautline_io::thread::at_end;

    /// The cheap half of an asymmetric store-load fence; pairs with [`barrier_heavy`].
    #[inline(always)]
    pub(crate) fn barrier_light() {
        tautline_io::barrier::light();
    }

    /// The expensive half: afterwards every thread's earlier stores before its `barrier_light` are
    /// visible here, and ours there.
    pub(crate) fn barrier_heavy() {
        tautline_io::barrier::heavy();
    }
}

#[cfg(loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic;
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
    pub(crate) use tautline_io::cpu::thread_pointer;

    pub(crate) fn barrier_light() {
        atomic::fence(atomic::Ordering::SeqCst);
    }

    pub(crate) fn barrier_heavy() {
        atomic::fence(atomic::Ordering::SeqCst);
    }

    pub(crate) fn prefetch<T>(_: *const T) {}

    pub(crate) fn prefetch_to_write<T>(_: *const T) {}
}

pub(crate) use imp::*;

/// Locks, and goes on with the data of a thread that panicked while it held the lock: an engine
/// invariant never spans a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

/// A value on a cache line (pair) of its own: the prefetcher of x86 fetches lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Padded<T>(pub(crate) T);
