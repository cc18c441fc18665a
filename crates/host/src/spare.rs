//! A spare descriptor for reading files when the process has no other descriptor left.
//!
//! Connections of strangers can use up all descriptors. The removal of a key must take effect even
//! then.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

/// An object that uses one descriptor and little else.
#[cfg(unix)]
type Descriptor = std::os::unix::net::UnixDatagram;
#[cfg(not(unix))]
type Descriptor = ();

/// A spare descriptor. `None` while none is available.
#[derive(Debug)]
pub(crate) struct Spare(Mutex<Option<Descriptor>>);

impl Spare {
    /// The spare descriptor of this process, shared by its users.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Spare>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let spare = Arc::new(Spare(Mutex::new(open())));
            *shared = Arc::downgrade(&spare);
            spare
        })
    }

    /// Runs a function that needs a descriptor. If another thread uses the spare one, the function
    /// runs without it: waiting is no option, because a forked child would wait for that thread for
    /// ever.
    pub(crate) fn lend<T>(&self, what: impl FnOnce() -> T) -> T {
        let mut spare = match self.0.try_lock() {
            Ok(spare) => Some(spare),
            Err(TryLockError::Poisoned(spare)) => Some(spare.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        // While the process has another descriptor, the spare one stays open: a stranger's
        // connection could take its place.
        if let Some(spare) = &mut spare
            && open().is_none()
        {
            **spare = None;
        }
        let done = what();
        if let Some(spare) = &mut spare
            && spare.is_none()
        {
            **spare = open();
        }
        done
    }

    /// Tries again to open a spare descriptor.
    pub(crate) fn fill(&self) {
        if let Ok(mut spare) = self.0.try_lock()
            && spare.is_none()
        {
            *spare = open();
        }
    }
}

#[cfg(unix)]
fn open() -> Option<Descriptor> {
    Descriptor::unbound().ok()
}

#[cfg(not(unix))]
fn open() -> Option<Descriptor> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_spare_descriptor_stays_open_while_there_are_others() {
        let spare = Spare(Mutex::new(open()));
        let identity = || {
            let number = spare.0.lock().unwrap().as_ref().unwrap().as_raw_fd();
            std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap()
        };
        let before = identity();
        assert!(spare.lend(|| std::fs::File::open("/dev/null")).is_ok());
        assert_eq!(identity(), before);
    }
}
