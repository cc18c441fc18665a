//! A socket of its own: only sockets can be waited on, and a set is none. What wakes one of the
//! others wakes that too.

use std::io;
use std::sync::Arc;

use crate::fd::BorrowedFd;
use crate::wake::WakeFd;

/// A descriptor that is readable when one of several is woken.
#[derive(Debug)]
pub struct AnyWake {
    own: Arc<WakeFd>,
}

impl AnyWake {
    /// One with nothing but its own.
    pub fn new() -> io::Result<Self> {
        Ok(AnyWake { own: Arc::new(WakeFd::new()?) })
    }

    /// Its own, which the caller wakes and drains.
    pub fn own(&self) -> &Arc<WakeFd> {
        &self.own
    }

    /// Adds one. If that is woken already, so is this.
    pub fn add(&self, wake: &Arc<WakeFd>) -> io::Result<()> {
        wake.lead(&self.own);
        // It may have been woken before.
        self.own.wake();
        Ok(())
    }

    /// Takes one out.
    pub fn remove(&self, wake: &Arc<WakeFd>) {
        wake.leave(&self.own);
    }

    /// The descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}
