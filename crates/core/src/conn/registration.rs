//! The name by which the I/O thread's reactor knows a read set.
//!
//! The I/O thread gives it, some time after the set was made; the owner may hand the reading over
//! before. To make the registration live under a wrong name would send its events elsewhere, so
//! without a name nothing is done: the I/O thread makes it live when it gives the name. One of the
//! two sees the other:
//!
//! ```text
//! owner:       baton = ARMED;  [fence]  name?       -> make it live
//! I/O thread:  name;  [fence]  make it live ... event:  baton?  -> read
//! ```

use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicU64, fence};

/// No token of the reactor's.
const UNNAMED: u64 = u64::MAX;

/// The name, once there is one.
// Relaxed: fence, by `set_name` and `name`.
#[derive(Debug)]
pub(crate) struct Registration(AtomicU64);

impl Registration {
    /// Without a name.
    pub(crate) fn unnamed() -> Self {
        Registration(AtomicU64::new(UNNAMED))
    }

    /// I/O thread: the set is registered. It is made live after this.
    pub(crate) fn set_name(&self, token: u64) {
        self.0.store(token, Relaxed);
        fence(SeqCst);
    }

    /// The name. `None`: the I/O thread, which is yet to give it, sees where the baton is.
    #[inline]
    pub(crate) fn name(&self) -> Option<u64> {
        let mut token = self.0.load(Relaxed);
        if token == UNNAMED {
            fence(SeqCst);
            token = self.0.load(Relaxed);
        }
        (token != UNNAMED).then_some(token)
    }
}
