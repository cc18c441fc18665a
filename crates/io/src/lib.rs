//! The operating system, as the engine sees it. Every system call of the project and nearly all
//! OS-level `unsafe` is in this crate, behind safe types. This crate does not know the protocol.
//!
//! ```text
//!   reactor   readiness of many descriptors (epoll, kqueue; poll(2) for tests)
//!   wake      a descriptor another thread can make readable     timer   one that a clock does
//!   poll      readiness of a few descriptors, once
//!   net       stream sockets and their addresses                resolve host names, off the caller's path
//!   clock     cheap ticks                                       time    nanoseconds
//!   barrier   asymmetric store-load fence                       thread  names, placement, signals
//!   errno     the C error number                                random  bytes from the kernel
//!   interfaces   network interfaces by name          fork    how often the process was forked
//!   env       variables, unless the caller has fewer rights    slab   memory for other processes
//!   lending   the switch of loans         children   children that may read shared bodies
//!   process_end  the status at exit(3)
//! ```
//!
//! Invariants: every descriptor made here is close-on-exec, and every socket is non-blocking.
//! Interrupted calls are retried, except by the functions that wait. Those report the interruption
//! or return without a result, so that the caller can check its own state again. No input from the
//! kernel, a peer or a caller makes a function panic. Code that differs between systems is in
//! sibling files, which the `mod` line selects.

#![warn(unreachable_pub)]

pub mod barrier;
#[cfg(feature = "certificates")]
pub mod certificates;
#[cfg(linux_kernel)]
mod children;
pub mod clock;
pub mod env;
pub mod errno;
pub mod fd;
pub mod fork;
#[cfg_attr(windows, path = "interfaces/windows.rs")]
pub mod interfaces;
pub mod lending;
#[cfg(linux_kernel)]
mod memfd;
pub mod net;
pub mod poll;
#[cfg_attr(not(all(linux_kernel, target_env = "gnu")), path = "process_end/absent.rs")]
pub mod process_end;
pub mod random;
pub mod reactor;
pub mod resolve;
#[cfg(linux_kernel)]
pub mod slab;
pub mod stderr_report;
pub mod thread;
pub mod time;
pub mod timer;
#[cfg(linux_kernel)]
mod unload;
pub mod wake;

#[cfg(all(unix, not(linux_kernel)))]
mod kqueue;
mod sys;

#[cfg(tautline_bsd)]
mod imitation;

#[cfg(windows)]
mod windows;

// Module that the code uses under the name `libc`.
#[cfg(all(unix, not(tautline_bsd)))]
use ::libc;
#[cfg(tautline_bsd)]
use imitation as libc;
#[cfg(windows)]
use windows as libc;
