//! The handoff of work between a socket's owner and an I/O thread. Each module is one protocol,
//! with a loom model of the code that ships.
//!
//! ```text
//!   inbox         news from the I/O side to a socket's owner
//!   signal        a wake descriptor, made when its owner first needs it
//!   baton         which of the two threads reads a socket's connections
//!   chore         work that one thread leaves to the other
//!   registration  the name of a read set in the I/O thread's reactor
//!   wait_flag     a thread waits until another one changes something
//! ```

pub mod baton;
pub mod chore;
pub mod inbox;
pub mod registration;
pub mod signal;
pub mod wait_flag;
