//! `AnyWake`: one descriptor for several [`WakeFd`](super::WakeFd)s, on which other code can wait.
//! One `WakeFd` belongs to the `AnyWake` itself. The descriptor becomes readable when any `WakeFd`
//! is woken, and stays readable until that one and the own `WakeFd` are drained.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::AnyWake;
#[cfg(windows)]
pub use windows::AnyWake;
