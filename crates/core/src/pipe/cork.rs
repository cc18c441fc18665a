//! Holding back: what a socket sends while it is corked is written when the cork is gone, or when
//! there is much of it.
//!
//! The mark belongs to the thread, so a message that is sent without a cork pays nothing for it: it
//! is looked at only where the flush rule is asked anyway.

use super::errands::Left;
use crate::sync::Arc;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Where the corked socket notes what it has left; 0 without one.
    static CORKED: Cell<usize> = const { Cell::new(0) };
}

/// While it exists, its thread does not write what one socket sends.
#[derive(Debug)]
pub struct Cork {
    /// The one before it.
    former: usize,
    /// Belongs to its thread.
    here: PhantomData<*const ()>,
}

impl Cork {
    pub(super) fn new(left: &Arc<Left>) -> Cork {
        Cork { former: CORKED.replace(Arc::as_ptr(left).addr()), here: PhantomData }
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        CORKED.set(self.former);
    }
}

/// Whether the socket of this pipe is corked.
pub(super) fn holds(left: Option<&Arc<Left>>) -> bool {
    let corked = CORKED.get();
    corked != 0 && left.is_some_and(|left| Arc::as_ptr(left).addr() == corked)
}
