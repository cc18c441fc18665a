//! When: to write, to look after what was left. Pure rules: the time comes in as ticks of the
//! clock, decisions go out.
//!
//! The principle: *writing may take a share of a thread's time*. The first message of a lull and an
//! answer go at once; a known burst goes whole; everything else waits for others until the share
//! allows the next write.
//!
//! What can be measured is measured: what a write costs, how fast messages come, what a yield
//! takes. One cost cannot be, for it is another thread's: that of waking it. It is [`WAKE`], and
//! the times of the rules are parts and multiples of it.

pub(crate) mod bursts;
pub(crate) mod crowd;
pub(crate) mod flush;
pub(crate) mod idle;
mod pace;
pub(crate) mod rounds;
mod spent;
pub(crate) mod watch;

/// What it takes to put a thread to sleep and to wake it again, in nanoseconds: about 20 µs where
/// the system wakes it on another core, as on the processors of the last ten years. The time that
/// a thread looks before it sleeps, the longest that a message waits for others, and a pause that
/// ends a burst follow from it.
pub(crate) const WAKE: u64 = 20_000;

#[cfg(test)]
mod sim;
