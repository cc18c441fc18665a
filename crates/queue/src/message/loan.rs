//! Bodies in the memory of another process.

use super::memory::{ForeignBlock, HeapBlock};
use super::{BodyOwner, FOREIGN_SHARED, HEAP, Message};
use tautline_io::net::Loan;
use tautline_mem::blocks;
use tautline_mem::reserve::NoMemory;

impl From<Loan> for Message {
    /// A message whose body is in the memory of another process, and is not copied. It can only be
    /// read until [`Message::expose`].
    fn from(loan: Loan) -> Self {
        let (data, len) = (loan.as_ptr().cast_mut(), loan.length());
        let block = ForeignBlock::lent(loan);
        Message::outside(FOREIGN_SHARED, data, len, BodyOwner { shared: block })
    }
}

impl Message {
    /// True if the body was received without a copy, and is in the memory of another process.
    pub fn is_loan(&self) -> bool {
        self.foreign().is_some_and(ForeignBlock::is_lent)
    }

    /// Returns a copy of `body` in memory that other processes can read in place. `None` if it lies
    /// in such memory, or if there is none for it.
    pub fn lendable_copy(body: &[u8]) -> Option<Self> {
        if blocks::is_of_source(body.as_ptr()) {
            return None;
        }
        let block = HeapBlock::allocate_from_source(body.len())?.as_ptr();
        let data = HeapBlock::data(block);
        // SAFETY: a new block of this length.
        unsafe { data.copy_from_nonoverlapping(body.as_ptr(), body.len()) };
        Some(Message::outside(HEAP, data, body.len(), BodyOwner { heap: block }))
    }

    /// Makes the body writable for a C program, with or without a copy.
    ///
    /// # Errors
    /// There is no memory for a copy.
    #[inline]
    pub fn expose(&mut self) -> Result<(), NoMemory> {
        if self.is_loan() { expose(self) } else { Ok(()) }
    }
}

#[cold]
fn expose(message: &mut Message) -> Result<(), NoMemory> {
    if let Some(data) = message.foreign().and_then(|block| block.loan()?.expose()) {
        // The body is outside of the struct.
        message.body.outside.data = data;
        return Ok(());
    }
    let body = message.as_slice();
    // SAFETY: the copy is complete before the message is used.
    let mut copy = unsafe { Message::uninit(body.len()) }.ok_or(NoMemory)?;
    // SAFETY: both have this length, and the new one is not shared.
    unsafe { body.as_ptr().copy_to_nonoverlapping(copy.data_ptr(), body.len()) };
    message.replace_body(copy);
    Ok(())
}
