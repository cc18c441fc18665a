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
/// What a scheduler lets a thread run at a time, about, in nanoseconds: nothing rests for longer in
/// order to save time, and what lies so far apart has nothing to do with each other.
pub(crate) const SLICE: u64 = 10_000_000;
/// A pause that a program does not make by accident, in nanoseconds, but because it has nothing to
/// do.
pub(crate) const MOMENT: u64 = 1_000_000;
/// What costs as much as a hundred messages is done with one in this many, or costs a thread one
/// part in this many of its time.
pub(crate) const SELDOM: u32 = 64;
/// What was seen so often in a row is expected to go on.
pub(crate) const HABIT: u8 = 8;
/// What a system hands to a network interface at a time, in bytes: an IP packet has 16 bits for
/// its length.
pub(crate) const SEGMENT: usize = 64 * 1024;

#[cfg(test)]
mod sim;
