//! Implementation by a separate socket, because only sockets can be waited on and a set is not a
//! socket. A wake-up of any member also wakes this socket.

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
    /// Creates one that has only its own `WakeFd`.
    pub fn new() -> io::Result<Self> {
        Ok(AnyWake { own: Arc::new(WakeFd::new()?) })
    }

    /// Returns its own `WakeFd`, which the caller wakes and drains.
    pub fn own(&self) -> &Arc<WakeFd> {
        &self.own
    }

    /// Adds `wake`. If `wake` is woken already, this becomes readable.
    pub fn add(&self, wake: &Arc<WakeFd>) -> io::Result<()> {
        wake.lead(&self.own);
        // `wake` may have been woken before.
        self.own.wake();
        Ok(())
    }

    /// Removes `wake`.
    pub fn remove(&self, wake: &Arc<WakeFd>) {
        wake.leave(&self.own);
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}
