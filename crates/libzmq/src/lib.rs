//! Tautline as libzmq: the C ABI of ZeroMQ 4.3, one concept per file.
//!
//! Programs written for libzmq call these functions through `include/zmq.h`; the prototypes there and the
//! `extern "C"` functions here are the same list. What a function does and which errno it sets is in the
//! manual page of its name.
//!
//! ```text
//!   error     zmq_errno, zmq_strerror        version, has   what this library is and can
//!   handle    opaque pointers given to C     guard          no panic crosses the ABI
//!   timers    zmq_timers_*                   stopwatch, thread, atomic_counter   portability helpers
//!   z85, curve   key text and key pairs
//! ```
//!
//! # Safety
//! Every exported function takes what C gives it. A pointer must be null or valid as its manual page
//! demands: that is the caller's side of each `SAFETY` comment here. Null and pointers to another kind of
//! object are told apart and answered with an errno wherever the manual names one.

mod atomic_counter;
mod curve;
mod error;
mod guard;
mod handle;
mod has;
mod stopwatch;
mod thread;
mod timers;
mod version;
mod z85;
