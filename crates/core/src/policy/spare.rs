//! A descriptor that is kept for reading files when the process has no other one left.
//!
//! Connections of strangers can use up all descriptors. The removal of a key must take effect
//! even then.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

/// Something that takes a descriptor and nothing else.
#[cfg(unix)]
type Descriptor = std::os::unix::net::UnixDatagram;
#[cfg(not(unix))]
type Descriptor = ();

/// A spare descriptor. `None` while there is none to be had.
#[derive(Debug)]
pub(super) struct Spare(Mutex<Option<Descriptor>>);

impl Spare {
    /// The one of this process, as long as something needs it.
    pub(super) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Spare>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let spare = Arc::new(Spare(Mutex::new(open())));
            *shared = Arc::downgrade(&spare);
            spare
        })
    }

    /// Does something that needs a descriptor. If another thread has the spare one just now, it has
    /// to do without: a forked child would wait for that thread for ever.
    pub(super) fn lend<T>(&self, what: impl FnOnce() -> T) -> T {
        let mut spare = match self.0.try_lock() {
            Ok(spare) => Some(spare),
            Err(TryLockError::Poisoned(spare)) => Some(spare.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(spare) = &mut spare {
            **spare = None;
        }
        let done = what();
        if let Some(spare) = &mut spare {
            **spare = open();
        }
        done
    }

    /// Tries again to have one.
    pub(super) fn fill(&self) {
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
