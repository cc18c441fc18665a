//! Corking: messages that a corked socket sends are written when the cork is removed, or when there
//! are many.
//!
//! Each thread stores which socket it has corked. So a message that is sent without a cork pays no
//! cost: the stored value is read only when the flush rule is asked.

use super::errands::PipesShared;
use std::cell::Cell;
use std::marker::PhantomData;
use tautline_queue::sync::Arc;

thread_local! {
    /// Address of the corked socket's `PipesShared`, which lists its unflushed pipes. 0 without a
    /// cork.
    static CORKED: Cell<usize> = const { Cell::new(0) };
}

/// A cork: while this value exists, its thread does not write the messages of one socket.
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
