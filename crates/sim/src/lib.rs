//! A simulated system for the whole engine. With `--cfg simulated`, this crate gives its program a
//! simulated kernel, clock and scheduler, behind the names of the C library's functions. A number,
//! the seed, determines the whole run. See `docs/develop/simulation.md`.
//!
//! ```text
//!   workload   simulated programs, and the properties that they check
//!   entry      the C library's functions
//!   world      threads and time: the choice of the next thread, and the jump to the next event
//!   kernel     descriptors, sockets, epoll sets, timers
//!   faults     injected faults, and their frequency
//!   stores     stores that other threads see late
//!   memory     allocated blocks, lost blocks, and secrets in freed blocks
//!   rng        numbers from the seed        raw   the real system calls
//! ```
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![cfg_attr(not(simulated), allow(dead_code, unused_imports))]
#![warn(unreachable_pub)]

#[cfg(simulated)]
mod entry;
mod faults;
mod kernel;
#[cfg(simulated)]
mod memory;
mod raw;
mod rng;
#[cfg(simulated)]
mod store_buffer;
#[cfg(simulated)]
mod workload;
mod world;

#[cfg(simulated)]
pub use workload::main;
