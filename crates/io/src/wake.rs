//! A descriptor that any thread can make readable: how a sleeping owner or driver is woken. Wakes that
//! come before the descriptor is drained merge into one.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod eventfd;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
#[cfg_attr(test, allow(unreachable_pub, reason = "exported on other systems"))]
mod pipe;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use eventfd::WakeFd;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use pipe::WakeFd;

#[cfg(test)]
mod tests;
