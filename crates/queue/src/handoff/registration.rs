//! The name by which the I/O thread's reactor knows a read set.
//!
//! The I/O thread sets the name some time after the set was made. The owner may hand the reading
//! over earlier. A registration under a wrong name would send its events to another source. So the
//! owner does not arm a registration without a name; the I/O thread registers the set armed, and
//! handles events only after it has set the name. At least one of the two threads sees the other's
//! store:
//!
//! ```text
//! owner:       baton = ARMED;  [fence]  name?       -> make it live
//! I/O thread:  make it live;  name;  [fence]  ... event:  baton?  -> read
//! ```

use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicU64, fence};

/// Not valid tokens of the reactor.
const UNNAMED: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

/// The name, once there is one.
// Relaxed: fence, by `set_name` and `name`.
#[derive(Debug)]
pub struct Registration(AtomicU64);

impl Registration {
    /// Returns a registration without a name.
    pub fn unnamed() -> Self {
        Registration(AtomicU64::new(UNNAMED))
    }

    /// I/O thread: sets the name after the set is registered. The thread handles events of the
    /// registration after this.
    pub fn set_name(&self, token: u64) {
        self.0.store(token, Relaxed);
        fence(SeqCst);
    }

    /// Returns the name. `None` if the I/O thread has not set it yet. The I/O thread will then see
    /// the state of the baton.
    #[inline]
    pub fn name(&self) -> Option<u64> {
        let mut token = self.0.load(Relaxed);
        if token == UNNAMED {
            fence(SeqCst);
            token = self.0.load(Relaxed);
        }
        (token < ENDED).then_some(token)
    }

    /// I/O thread: ends the registration, also one that has no name yet. Returns the name.
    pub fn end(&self) -> Option<u64> {
        let name = self.name();
        self.0.store(ENDED, Relaxed);
        name
    }

    /// I/O thread: true after [`Registration::end`].
    pub fn is_ended(&self) -> bool {
        self.0.load(Relaxed) == ENDED
    }
}
