//! Readiness of many descriptors that stay registered. A driver thread waits in one; a socket with
//! several connections has a set of its own, which can be registered in another.
//!
//! All methods may be called from any thread, also while one waits. A descriptor must be removed
//! before it is closed.

use std::io;
use std::time::Duration;

use crate::fd::BorrowedFd;

#[cfg(linux_kernel)]
mod epoll;
#[cfg(all(unix, not(linux_kernel)))]
mod kqueue;
mod poll;
#[cfg(windows)]
mod winsock;

/// The set of descriptors that the system keeps: an epoll set, or elsewhere a kqueue.
#[cfg(linux_kernel)]
pub use epoll::Epoll as SystemReactor;
/// The set of descriptors that the system keeps: a kqueue, or on Linux an epoll set.
#[cfg(all(unix, not(linux_kernel)))]
pub use kqueue::KqueueReactor as SystemReactor;
pub use poll::PollReactor;
/// The set of descriptors that the system keeps: on Windows one of our own, over `WSAPoll`.
#[cfg(windows)]
pub use winsock::WinsockReactor as SystemReactor;
#[cfg(windows)]
pub(crate) use winsock::poll_with_sets;

/// The caller's name for a registration; comes back with its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What a registration waits for. Hang-ups and errors are reported in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Reading would not block.
    pub readable: bool,
    /// Writing would not block.
    pub writable: bool,
    /// The other end will send nothing more. (Of [`PollReactor`], on Linux.)
    pub ended: bool,
}

impl Interest {
    /// Wait for data.
    pub const READ: Interest = Interest { readable: true, ..Interest::NONE };
    /// Wait for room.
    pub const WRITE: Interest = Interest { writable: true, ..Interest::NONE };
    /// Wait for either.
    pub const BOTH: Interest = Interest { readable: true, ..Interest::WRITE };
    /// Wait for the end of what the other end sends.
    pub const END: Interest = Interest { ended: true, ..Interest::NONE };
    /// Wait for neither: muted. A hang-up is still reported, but once at most until the next
    /// `modify`.
    pub const NONE: Interest = Interest { readable: false, writable: false, ended: false };
}

/// How often readiness is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By every wait, for as long as it lasts.
    Level,
    /// Once; `modify` arms the registration again.
    OneShot,
}

/// A descriptor is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The registration.
    pub token: Token,
    /// Reading would not block. Not set for a hang-up alone.
    pub readable: bool,
    /// Writing would not block. Not set for a hang-up alone.
    pub writable: bool,
    /// The other end hung up or an error is pending. Data may still be there to read.
    pub closed: bool,
    /// The other end will send nothing more. Only if that was asked for.
    pub ended: bool,
}

/// A set of registered descriptors.
pub trait Reactor: Send + Sync {
    /// Registers a descriptor; EEXIST if it is already.
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()>;

    /// Replaces token, interest and mode of a registered descriptor, and arms it; ENOENT if there
    /// is none. What is ready at this moment is reported by the next wait, also by one already
    /// under way.
    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()>;

    /// Forgets a descriptor; ENOENT if there is none. A wait that has collected its events can
    /// still report it.
    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Replaces `events` with what is ready, after at most `timeout`; a signal or the timeout
    /// leaves it empty. Not more than a bounded number of events at once, and none forgotten.
    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// A descriptor that is readable while any member is ready, if this set has one: it can be
    /// polled, or registered in another set.
    fn as_pollable(&self) -> Option<BorrowedFd<'_>>;
}

#[cfg(test)]
mod tests;
