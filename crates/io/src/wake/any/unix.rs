//! Implementation by a set of the system, which is itself a descriptor.

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
    /// Creates one that has only its own `WakeFd`.
    pub fn new() -> io::Result<Self> {
        let any = AnyWake { set: SystemReactor::new()?, own: Arc::new(WakeFd::new()?) };
        any.add(&any.own)?;
        Ok(any)
    }

    /// Returns its own `WakeFd`, which the caller wakes and drains.
    pub fn own(&self) -> &Arc<WakeFd> {
        &self.own
    }

    /// Adds `wake`. If `wake` is woken already, this becomes readable.
    pub fn add(&self, wake: &Arc<WakeFd>) -> io::Result<()> {
        self.set.add(wake.as_fd(), Token(0), Interest::READ, Mode::Level)
    }

    /// Removes `wake`.
    pub fn remove(&self, wake: &Arc<WakeFd>) {
        let _ = self.set.remove(wake.as_fd());
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
