//! Readiness of many descriptors that stay registered. A driver thread waits in one reactor. A
//! socket with several connections has a separate reactor, which can be registered in another one.
//!
//! All methods may be called from any thread, also while another thread waits. A descriptor must be
//! removed before it is closed.

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

/// The system's set of descriptors: an epoll set on Linux, a kqueue elsewhere.
#[cfg(linux_kernel)]
pub use epoll::Epoll as SystemReactor;
/// The system's set of descriptors: a kqueue, or an epoll set on Linux.
#[cfg(all(unix, not(linux_kernel)))]
pub use kqueue::KqueueReactor as SystemReactor;
pub use poll::PollReactor;
/// The system's set of descriptors: on Windows our own implementation over `WSAPoll`.
#[cfg(windows)]
pub use winsock::WinsockReactor as SystemReactor;
#[cfg(windows)]
pub(crate) use winsock::poll_with_sets;

/// Identifier that the caller gives a registration. Its events return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Conditions that a registration waits for. Hang-ups and errors are always reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Reading would not block.
    pub readable: bool,
    /// Writing would not block.
    pub writable: bool,
    /// The other end will send no further data. (For [`PollReactor`], on Linux.)
    pub ended: bool,
}

impl Interest {
    /// Wait for data.
    pub const READ: Interest = Interest { readable: true, ..Interest::NONE };
    /// Wait for space.
    pub const WRITE: Interest = Interest { writable: true, ..Interest::NONE };
    /// Wait for either.
    pub const BOTH: Interest = Interest { readable: true, ..Interest::WRITE };
    /// Wait for the end of the other end's data.
    pub const END: Interest = Interest { ended: true, ..Interest::NONE };
    /// Wait for no condition: muted. A hang-up is still reported, but at most once until the next
    /// `modify`.
    pub const NONE: Interest = Interest { readable: false, writable: false, ended: false };
}

/// Number of waits that report the same readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every wait reports the readiness while it lasts.
    Level,
    /// One wait reports the readiness; `modify` arms the registration again.
    OneShot,
}

/// Readiness of one descriptor.
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
    /// The other end will send no further data. Set only if the registration asked for it.
    pub ended: bool,
}

/// A set of registered descriptors.
pub trait Reactor: Send + Sync {
    /// Registers a descriptor. Fails with EEXIST if it is registered already.
    fn add(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()>;

    /// Replaces token, interest and mode of a registered descriptor, and arms it. Fails with ENOENT
    /// if it is not registered. If the descriptor is ready now, the next wait reports it, even a
    /// wait already under way.
    fn modify(&self, fd: BorrowedFd<'_>, token: Token, interest: Interest, mode: Mode) -> io::Result<()>;

    /// Removes a descriptor. Fails with ENOENT if it is not registered. A wait that has already
    /// collected its events can still report it.
    fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Replaces `events` with the events that are ready, after at most `timeout`. A signal or the
    /// timeout leaves the list empty. One call returns a bounded number of events, and later calls
    /// return the remaining ones.
    fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// Returns a descriptor that is readable while any member is ready, if this set has one. It can
    /// be polled or registered in another set.
    fn as_pollable(&self) -> Option<BorrowedFd<'_>>;
}

#[cfg(test)]
mod tests;
