//! Tickets count the objects that must be gone before a context ends. Each socket holds one. Its
//! site, which may linger, holds another.

use tautline_io::wake::WakeFd;
use tautline_queue::sync::Arc;
use tautline_queue::sync::atomic::AtomicUsize;
use tautline_queue::sync::atomic::Ordering::SeqCst;

/// Counts the tickets of one context.
pub(crate) struct Tickets {
    count: AtomicUsize,
    /// Woken when the count falls to 0. `None` if the process was out of descriptors.
    pub(crate) gone: Option<WakeFd>,
}

impl Tickets {
    /// Creates a count of 0.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Tickets { count: AtomicUsize::new(0), gone: WakeFd::new().ok() })
    }

    /// True if at least one ticket is held.
    pub(crate) fn is_any_held(&self) -> bool {
        self.count.load(SeqCst) > 0
    }
}

/// A ticket that [`Tickets`] counts.
pub(crate) struct Ticket(Arc<Tickets>);

impl Ticket {
    pub(crate) fn new(tickets: &Arc<Tickets>) -> Self {
        tickets.count.fetch_add(1, SeqCst);
        Ticket(tickets.clone())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, SeqCst) == 1
            && let Some(gone) = &self.0.gone
        {
            gone.wake();
        }
    }
}
