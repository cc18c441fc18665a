//! [`WakeFd`] for systems without eventfd: a pair of connected sockets, woken by a byte.

use crate::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use crate::libc;
use std::io;
#[cfg(any(test, windows))]
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::sys::{NO_SIGNAL, check_length, retry, socket_pair};

/// A descriptor that is readable from [`wake`](WakeFd::wake) until [`drain`](WakeFd::drain).
#[derive(Debug)]
pub struct WakeFd {
    waiter: OwnedFd,
    waker: OwnedFd,
    /// Descriptors that are woken together with this one.
    #[cfg(any(test, windows))]
    followers: Mutex<Vec<Weak<WakeFd>>>,
}

impl WakeFd {
    /// Creates a descriptor that is not woken.
    pub fn new() -> io::Result<Self> {
        let (waiter, waker) = socket_pair()?;
        Ok(WakeFd {
            waiter,
            waker,
            #[cfg(any(test, windows))]
            followers: Mutex::default(),
        })
    }

    /// Makes the descriptor readable. Never blocks and cannot fail, because a full buffer is
    /// readable.
    pub fn wake(&self) {
        // SAFETY: the kernel reads one byte from a slice of one.
        let _ = retry(|| unsafe {
            check_length(libc::send(self.waker.as_raw_fd(), [1_u8].as_ptr().cast(), 1, NO_SIGNAL))
        });
        #[cfg(any(test, windows))]
        self.followers().iter().filter_map(Weak::upgrade).for_each(|follower| follower.wake());
    }

    /// Makes each wake-up of this also wake `follower`, which must not lead other descriptors.
    #[cfg(any(test, windows))]
    pub(super) fn lead(&self, follower: &Arc<WakeFd>) {
        self.followers().push(Arc::downgrade(follower));
    }

    /// Stops waking `follower`.
    #[cfg(any(test, windows))]
    pub(super) fn leave(&self, follower: &Arc<WakeFd>) {
        self.followers().retain(|known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(follower)));
    }

    #[cfg(any(test, windows))]
    fn followers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<WakeFd>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the descriptor unreadable again. Returns true if it had been woken.
    pub fn drain(&self) -> bool {
        let mut woken = false;
        let mut bytes = [0_u8; 256];
        loop {
            // SAFETY: the kernel writes at most the array's length into the exclusive array.
            let outcome = retry(|| unsafe {
                check_length(libc::recv(self.waiter.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0))
            });
            match outcome {
                Ok(0) | Err(_) => return woken,
                Ok(_) => woken = true,
            }
        }
    }

    /// Returns the descriptor to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.as_fd()
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.as_fd()
    }
}
