//! std's atomics with a scheduling point before each access, at which the simulator (`crates/sim`)
//! may let another thread run. Only in a build with `--cfg simulated`.

use std::sync::OnceLock;
use std::sync::atomic as real;

pub use real::Ordering;

static POINT: OnceLock<fn()> = OnceLock::new();

/// From now on every scheduling point calls `point`. The first one stays.
pub fn set_scheduling_point(point: fn()) {
    let _ = POINT.set(point);
}

/// Another thread may run here.
#[inline]
pub fn scheduling_point() {
    if let Some(point) = POINT.get() {
        point();
    }
}

/// std's, behind a scheduling point.
pub fn fence(order: Ordering) {
    scheduling_point();
    real::fence(order);
}

macro_rules! methods {
    ($value:ty: $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(
            /// std's, behind a scheduling point.
            #[inline]
            pub fn $name(&self, $($argument: $kind),*) -> $result {
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
                self.0.get_mut()
            }

            /// As std's.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            methods! { $value:
                load(order: Ordering) -> $value;
                store(value: $value, order: Ordering) -> ();
                swap(value: $value, order: Ordering) -> $value;
                compare_exchange(old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
                compare_exchange_weak(old: $value, new: $value, success: Ordering, failure: Ordering) -> Result<$value, $value>;
            }

            /// std's, behind scheduling points.
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
