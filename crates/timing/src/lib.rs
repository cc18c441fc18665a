//! Timing rules: when to write, when to check queued bytes, and when to spin, rest or sleep. The
//! rules are pure: inputs are times in clock ticks, outputs are decisions. This crate makes no
//! system calls and reads no clock.
//!
//! The principle: *writing may take a share of a thread's time*. The first message after a lull and
//! a reply leave at once. A known burst leaves as a whole. All other messages wait for more
//! messages until the share allows the next write.
//!
//! The rules measure the cost of a write, the pace of the messages and the length of a yield. Only
//! the cost of waking another thread cannot be measured. The constant [`WAKE`] stands for it, and
//! the times of the rules are parts and multiples of `WAKE`.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]
// An internal crate: no caller needs these.
#![allow(clippy::new_without_default)]

mod account;
mod bursts;
mod clock;
mod crowd;
pub mod flush;
pub mod idle;
mod pace;
pub mod rounds;
pub mod rules;
pub mod supervisor;
pub mod wait_habit;

pub use account::ThreadAccount;
pub use clock::set_clock;

/// Time to put a thread to sleep and wake it again, in nanoseconds. About 20 µs if the system wakes
/// the thread on another core, on the processors of the last ten years. Three times follow from it:
/// how long a thread spins before it sleeps, how long a message waits for others, and the pause
/// that ends a burst.
pub const WAKE: u64 = 20_000;
/// Approximate time slice of a scheduler, in nanoseconds. No rest that saves time is longer, and
/// events that are further apart are unrelated.
pub const SLICE: u64 = 10_000_000;
/// Length of a pause, in nanoseconds, that shows that a program is idle and not just delayed.
pub const LULL_NS: u64 = 1_000_000;
/// A step that costs as much as a hundred messages runs for one message in this many, or may use
/// one part in this many of a thread's time.
pub const RARE_INTERVAL: u32 = 64;
/// A pattern that repeats this many times in a row is expected to continue.
pub const HABIT: u8 = 8;
/// Bytes that a system hands to a network interface at a time. The length field of an IP packet has
/// 16 bits.
pub const SEGMENT: usize = 64 * 1024;

#[cfg(test)]
mod sim;
