//! Corking: messages that a corked socket sends are written when the cork is removed, or when there
//! are many.
//!
//! The mark belongs to the thread. So a message that is sent without a cork pays no cost: the mark
//! is checked only where the flush rule is asked anyway.

use super::errands::PipesShared;
use crate::sync::Arc;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Address of the corked socket's `Left`, which records its unflushed pipes. 0 without a cork.
    static CORKED: Cell<usize> = const { Cell::new(0) };
}

/// While it exists, its thread does not write the messages of one socket.
#[derive(Debug)]
pub struct Cork {
    /// Value of the cork before this one.
    former: usize,
    /// Binds the cork to its thread.
    not_send: PhantomData<*const ()>,
}

impl Cork {
    pub(super) fn new(left: &Arc<PipesShared>) -> Cork {
        Cork { former: CORKED.replace(Arc::as_ptr(left).addr()), not_send: PhantomData }
    }
}

impl Drop for Cork {
    fn drop(&mut self) {
        CORKED.set(self.former);
    }
}

/// True if the socket of this pipe is corked.
pub(super) fn is_corked(left: Option<&Arc<PipesShared>>) -> bool {
    let corked = CORKED.get();
    corked != 0 && left.is_some_and(|left| Arc::as_ptr(left).addr() == corked)
}
