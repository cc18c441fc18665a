//! Memory for the engine: bodies of messages and segments of queues that one thread fills and
//! another one empties. This crate knows neither messages nor queues nor system calls.
//!
//! ```text
//!   blocks   a pool of memory blocks          copy   bodies, in the pieces that suit their reader
//!   cpu      hints to the cache, the thread pointer
//!   thread   functions that a thread calls when it exits
//!   reserve  an allocator that has memory for a while when the system has none
//!   sync     std's atomics and cells, or loom's in a model
//! ```
//!
//! `cargo bench -p tautline-mem` compares the pool with the system's allocator.

#![warn(unreachable_pub)]
// The models run parts of the crate without their users.
#![cfg_attr(loom, allow(dead_code))]

pub mod blocks;
pub mod copy;
pub mod cpu;
pub mod reserve;
pub mod sync;
pub mod thread;
