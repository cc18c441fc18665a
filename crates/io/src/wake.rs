//! A descriptor that any thread can make readable, to wake a sleeping owner or driver. Several
//! wake-ups before the descriptor is drained merge into one.

mod any;
#[cfg(linux_kernel)]
mod eventfd;
#[cfg(any(test, not(linux_kernel)))]
#[cfg_attr(test, allow(unreachable_pub, reason = "exported on other systems"))]
mod pipe;

pub use any::AnyWake;
#[cfg(linux_kernel)]
pub use eventfd::WakeFd;
#[cfg(not(linux_kernel))]
pub use pipe::WakeFd;

#[cfg(test)]
mod tests;
