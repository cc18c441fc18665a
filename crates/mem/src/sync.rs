//! Atomics and cells: std's, or loom's in a model, so that models run the code that ships. In a
//! simulation, std's with a scheduling point before each access.

#[cfg(simulated)]
#[doc(hidden)]
pub mod simulated;

#[cfg(not(loom))]
mod imp {
    #[cfg(simulated)]
    pub use super::simulated as atomic;
    #[cfg(not(simulated))]
    pub use std::sync::atomic;

    /// `UnsafeCell` with loom's closure interface, without any cost.
    #[derive(Debug)]
    pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Returns a cell that holds `value`.
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Calls `f` with a pointer for reading the value.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with a pointer for changing the value.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(loom)]
mod imp {
    pub use loom::cell::UnsafeCell;
    pub use loom::sync::atomic;
}

pub use imp::{UnsafeCell, atomic};

/// A value on its own cache line (pair): the prefetcher of x86 fetches lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(
    /// The value.
    pub T,
);
