//! `AnyWake`: one descriptor for several [`WakeFd`](super::WakeFd)s, which others can wait on. It
//! has one of its own beside them, and is readable from when one of all is woken until that one and
//! its own are drained.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::AnyWake;
#[cfg(windows)]
pub use windows::AnyWake;
