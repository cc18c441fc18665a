//! Memory, as the engine needs it: bodies of messages and segments of queues that one thread fills
//! and another one empties. Nothing in this crate knows a message, a queue or a system call.
//!
//! ```text
//!   blocks   a pool of memory blocks          copy   bodies, in the pieces that suit their reader
//!   cpu      hints to the cache, the thread pointer
//!   thread   what a thread gives back when it ends
//!   sync     std's atomics and cells, or loom's in a model
//! ```
//!
//! `cargo bench -p tautline-mem` measures the pool beside the system's allocator.

#![warn(unreachable_pub)]
// The models run parts without what uses them.
#![cfg_attr(loom, allow(dead_code))]

pub mod blocks;
pub mod copy;
pub mod cpu;
pub mod sync;
pub mod thread;
