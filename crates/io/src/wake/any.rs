//! `AnyWake`: one descriptor for several [`WakeFd`](super::WakeFd)s, on which other code can wait. It also
//! has a `WakeFd` of its own. It becomes readable when any of them is woken, and stays readable until that
//! one and its own are drained.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::AnyWake;
#[cfg(windows)]
pub use windows::AnyWake;
