//! std's atomics with a scheduling point before each access, at which the simulator (`crates/sim`)
//! may run another thread. Only in a build with `--cfg simulated`.
//!
//! A store that is not SeqCst may be delayed, as in a processor, until the thread's next access
//! that is not a load. If a load of another address comes first, the load is executed, then other
//! threads run, and then the store is executed. The simulator holds the delayed stores; this module
//! says when they are executed.

use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic as real;

pub use real::Ordering;

/// The simulator's functions for an access.
#[derive(Debug, Clone, Copy)]
pub struct Simulator {
    /// Lets another thread run, before the engine's access at this place of its sources.
    pub point: fn(&'static Location<'static>),
    /// Returns true if an exchange that may fail spuriously fails.
    pub fails: fn() -> bool,
    /// Returns true if the store of this value, with this number of bytes, to this address is
    /// delayed.
    pub keep: fn(*mut u8, u64, usize) -> bool,
    /// Returns true if a store to another address is delayed. A delayed store to this address is
    /// executed.
    pub keeps_other: fn(*mut u8) -> bool,
    /// Lets another thread run at this place while the calling thread has a delayed store.
    pub linger: fn(&'static Location<'static>),
    /// Executes the calling thread's delayed store.
    pub flush: fn(),
    /// Executes the delayed stores of all threads.
    pub flush_all: fn(),
    /// Called before the lock at this address is taken: executes the delayed store of the thread
    /// that held it last.
    pub before_lock: fn(usize),
    /// Called after the calling thread has taken the lock at this address.
    pub locked: fn(usize),
}

static SIMULATOR: OnceLock<Simulator> = OnceLock::new();

/// Installs the simulator. Only the first call has an effect.
pub fn set_simulator(simulator: Simulator) {
    let _ = SIMULATOR.set(simulator);
}

/// Lets another thread run here.
#[inline]
#[track_caller]
pub fn scheduling_point() {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.point)(Location::caller());
    }
}

/// Called before a lock is taken: another thread may run, and the stores of the last holder become
/// visible.
#[track_caller]
pub fn before_lock<T: ?Sized>(lock: &T) {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.point)(Location::caller());
        (simulator.before_lock)((&raw const *lock).addr());
    }
}

/// Called after the calling thread has taken a lock.
pub fn locked<T: ?Sized>(lock: &T) {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.locked)((&raw const *lock).addr());
    }
}

#[inline]
fn flush() {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.flush)();
    }
}

/// std's `fence`, behind a scheduling point.
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        flush();
    }
    scheduling_point();
    real::fence(order);
}

/// Executes all delayed stores, because the caller has exclusive access: the event that made it
/// exclusive has also made those stores visible.
fn flush_all() {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.flush_all)();
    }
}

/// Returns the bytes of a value of at most eight bytes.
fn bits<T: Copy>(value: T) -> u64 {
    let mut bits = 0;
    // SAFETY: the value of an atomic consists of integers or a pointer, and has at most eight
    // bytes.
    unsafe { (&raw mut bits).cast::<T>().write_unaligned(value) };
    bits
}

macro_rules! methods {
    ($value:ty: $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(
            /// std's method, behind a scheduling point.
            #[inline]
            #[track_caller]
            pub fn $name(&self, $($argument: $kind),*) -> $result {
                flush();
                scheduling_point();
                self.0.$name($($argument),*)
            }
        )*
    };
}

macro_rules! atomic {
    ($(#[$meta:meta])* $name:ident $(<$generic:ident>)?: $value:ty) => {
        /// std's type of this name, with a scheduling point before each access.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name$(<$generic>)?(real::$name$(<$generic>)?);

        impl$(<$generic>)? $name$(<$generic>)? {
            /// Like std's method.
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            /// Like std's method.
            pub fn get_mut(&mut self) -> &mut $value {
                flush_all();
                self.0.get_mut()
            }

            /// Like std's method.
            pub fn into_inner(self) -> $value {
                flush_all();
                self.0.into_inner()
            }

            methods! { $value:
                swap(value: $value, order: Ordering) -> $value;
                compare_exchange(old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
            }

            /// std's method, behind a scheduling point. The thread's earlier stores may become
            /// visible only afterwards.
            #[inline]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                scheduling_point();
                let at = self.0.as_ptr().cast();
                match SIMULATOR.get() {
                    Some(simulator) if (simulator.keeps_other)(at) => {
                        let value = self.0.load(order);
                        (simulator.linger)(Location::caller());
                        (simulator.flush)();
                        value
                    }
                    _ => self.0.load(order),
                }
            }

            /// std's method, behind a scheduling point; or later.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                flush();
                scheduling_point();
                let at = self.0.as_ptr().cast();
                let is_kept = order != Ordering::SeqCst
                    && SIMULATOR.get().is_some_and(|simulator| {
                        (simulator.keep)(at, bits(value), size_of::<$value>())
                    });
                if !is_kept {
                    self.0.store(value, order);
                }
            }

            /// std's method, behind a scheduling point. It may fail spuriously.
            #[inline]
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                flush();
                scheduling_point();
                if SIMULATOR.get().is_some_and(|simulator| (simulator.fails)()) {
                    return Err(self.0.load(failure));
                }
                self.0.compare_exchange(old, new, success, failure)
            }

            /// std's method, behind scheduling points.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut before = self.load(fetch);
                while let Some(after) = change(before) {
                    match self.compare_exchange_weak(before, after, set, fetch) {
                        Ok(value) => return Ok(value),
                        Err(value) => before = value,
                    }
                }
                Err(before)
            }
        }
    };
}

macro_rules! bits {
    ($name:ident: $value:ty) => {
        atomic!($name: $value);
        impl $name {
            methods! { $value:
                fetch_and(value: $value, order: Ordering) -> $value;
                fetch_or(value: $value, order: Ordering) -> $value;
                fetch_xor(value: $value, order: Ordering) -> $value;
            }
        }
    };
}

macro_rules! integer {
    ($name:ident: $value:ty) => {
        bits!($name: $value);
        impl $name {
            methods! { $value:
                fetch_add(value: $value, order: Ordering) -> $value;
                fetch_sub(value: $value, order: Ordering) -> $value;
                fetch_max(value: $value, order: Ordering) -> $value;
                fetch_min(value: $value, order: Ordering) -> $value;
            }
        }
    };
}

bits!(AtomicBool: bool);
integer!(AtomicU8: u8);
integer!(AtomicU16: u16);
integer!(AtomicU32: u32);
integer!(AtomicI32: i32);
integer!(AtomicU64: u64);
integer!(AtomicI64: i64);
integer!(AtomicUsize: usize);
integer!(AtomicIsize: isize);
atomic!(AtomicPtr<T>: *mut T);
