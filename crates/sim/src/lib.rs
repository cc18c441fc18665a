//! A simulated system for the whole engine. Built with `--cfg simulated`, a program that contains
//! this crate has a kernel, a clock and a scheduler of its own, behind the names of the C library's
//! functions; everything it does follows from a number, the seed. See `docs/develop/simulation.md`.
//!
//! ```text
//!   workload   what programs do in the simulation, and what must hold of it
//!   entry      the C library's functions
//!   world      threads and time: which one runs, and what happens when none can
//!   kernel     descriptors, sockets, epoll sets, timers
//!   faults     what may go wrong, and how often
//!   stores     stores that others see late
//!   memory     what is allocated, and what of it is lost
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
mod stores;
#[cfg(simulated)]
mod workload;
mod world;

#[cfg(simulated)]
pub use workload::main;
