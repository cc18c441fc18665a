//! std's atomics with a scheduling point before each access, at which the simulator (`crates/sim`)
//! may let another thread run. Only in a build with `--cfg simulated`.
//!
//! A store that is not SeqCst may be kept back, as a processor does: until the thread's next access
//! that is not a load. A load of something else that comes first is done, others run, and then the
//! store is. What is kept is the simulator's; here stands when it is to be let go.

use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic as real;

pub use real::Ordering;

/// What the simulator does at an access.
#[derive(Debug, Clone, Copy)]
pub struct Simulator {
    /// Another thread may run, before what the engine does at this place of its sources.
    pub point: fn(&'static Location<'static>),
    /// Whether an exchange that may fail for no reason does.
    pub fails: fn() -> bool,
    /// Whether the store of this value, of this many bytes, to this address is kept back.
    pub keep: fn(*mut u8, u64, usize) -> bool,
    /// Whether a store to another address is kept back. One to this address is done.
    pub keeps_other: fn(*mut u8) -> bool,
    /// While the calling thread keeps a store back, at this place: another thread may run.
    pub linger: fn(&'static Location<'static>),
    /// Does the store that the calling thread keeps back.
    pub flush: fn(),
    /// Does the stores that any thread keeps back.
    pub flush_all: fn(),
    /// The lock at this address is about to be taken: does what the thread that had it last keeps
    /// back.
    pub before_lock: fn(usize),
    /// The calling thread has taken the lock at this address.
    pub locked: fn(usize),
}

static SIMULATOR: OnceLock<Simulator> = OnceLock::new();

/// From now on the simulator is asked. The first one stays.
pub fn set_simulator(simulator: Simulator) {
    let _ = SIMULATOR.set(simulator);
}

/// Another thread may run here.
#[inline]
#[track_caller]
pub fn scheduling_point() {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.point)(Location::caller());
    }
}

/// A lock is about to be taken: another thread may run, and what the one that had it last has
/// stored is seen.
#[track_caller]
pub fn before_lock<T: ?Sized>(lock: &T) {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.point)(Location::caller());
        (simulator.before_lock)((&raw const *lock).addr());
    }
}

/// The calling thread has taken a lock.
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

/// std's, behind a scheduling point.
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        flush();
    }
    scheduling_point();
    real::fence(order);
}

/// The caller has what others have stored for itself alone: whatever made it so made that visible.
fn flush_all() {
    if let Some(simulator) = SIMULATOR.get() {
        (simulator.flush_all)();
    }
}

/// The bytes of a value, which has no more than eight.
fn bits<T: Copy>(value: T) -> u64 {
    let mut bits = 0;
    // SAFETY: a value of an atomic is of integers or a pointer, and has at most eight bytes.
    unsafe { (&raw mut bits).cast::<T>().write_unaligned(value) };
    bits
}

macro_rules! methods {
    ($value:ty: $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(
            /// std's, behind a scheduling point.
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
        /// std's of this name, with a scheduling point before each access.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name$(<$generic>)?(real::$name$(<$generic>)?);

        impl$(<$generic>)? $name$(<$generic>)? {
            /// As std's.
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            /// As std's.
            pub fn get_mut(&mut self) -> &mut $value {
                flush_all();
                self.0.get_mut()
            }

            /// As std's.
            pub fn into_inner(self) -> $value {
                flush_all();
                self.0.into_inner()
            }

            methods! { $value:
                swap(value: $value, order: Ordering) -> $value;
                compare_exchange(old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
            }

            /// std's, behind a scheduling point. What the thread has stored before may become
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

            /// std's, behind a scheduling point; or later.
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

            /// std's, behind a scheduling point. It may fail for no reason.
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

            /// std's, behind scheduling points.
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
