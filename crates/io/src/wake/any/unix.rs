//! A set of the system's, which is a descriptor itself.

use std::io;
use std::sync::Arc;

use crate::fd::BorrowedFd;
use crate::reactor::{Interest, Mode, Reactor, SystemReactor, Token};
use crate::wake::WakeFd;

/// A descriptor that is readable when one of several is woken.
#[derive(Debug)]
pub struct AnyWake {
    set: SystemReactor,
    own: Arc<WakeFd>,
}

impl AnyWake {
    /// One with nothing but its own.
    pub fn new() -> io::Result<Self> {
        let any = AnyWake { set: SystemReactor::new()?, own: Arc::new(WakeFd::new()?) };
        any.add(&any.own)?;
        Ok(any)
    }

    /// Its own, which the caller wakes and drains.
    pub fn own(&self) -> &Arc<WakeFd> {
        &self.own
    }

    /// Adds one. If that is woken already, so is this.
    pub fn add(&self, wake: &Arc<WakeFd>) -> io::Result<()> {
        self.set.add(wake.as_fd(), Token(0), Interest::READ, Mode::Level)
    }

    /// Takes one out.
    pub fn remove(&self, wake: &Arc<WakeFd>) {
        let _ = self.set.remove(wake.as_fd());
    }

    /// The descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
