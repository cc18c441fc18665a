//! Bodies in the memory of another process.

use super::memory::{ForeignBlock, HeapBlock};
use super::{BodyOwner, FOREIGN_SHARED, HEAP, Message};
use tautline_io::lending;
use tautline_io::net::{self, Loan};
use tautline_mem::blocks;
use tautline_mem::reserve::NoMemory;

/// True if a body of `len` bytes may be read in place by other processes.
pub fn may_be_loan(len: usize) -> bool {
    lending::may_lend(len)
}

/// Returns a message of `len` bytes, in memory that other processes can read in place. A peer that
/// takes loans then receives it without a copy. In ordinary memory if loans are off, or if `len` or
/// the memory for loans is too small. Its bytes are zeroes, or those of earlier bodies of this
/// process. `None` if memory is exhausted.
pub fn loan(len: usize) -> Option<Message> {
    allocate_in_source(len).or_else(|| zeroed(len))
}

/// The memory of slabs is from the system, which fills it with zeroes. So its bytes are always
/// initialised.
fn allocate_in_source(len: usize) -> Option<Message> {
    let is_prepared = net::prepare_loans();
    let block = is_prepared.then(|| HeapBlock::allocate_from_source(len, true))??.as_ptr();
    Some(Message::outside(HEAP, HeapBlock::data(block), len, BodyOwner { heap: block }))
}

fn zeroed(len: usize) -> Option<Message> {
    // SAFETY: the whole body is written below.
    let mut message = unsafe { Message::uninit(len) }?;
    // SAFETY: a new message of exactly this length, which owns its body.
    unsafe { message.data_ptr().write_bytes(0, len) };
    Some(message)
}

/// True if a program must not write to the body: another message refers to it, also one that is
/// queued, or another process reads it.
pub fn is_in_use(message: &Message) -> bool {
    !message.is_unique()
}

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

    /// Moves the body to memory that other processes can read in place, unless it is there. Returns
    /// false if loans are off, if the body is too short, or if there is no memory for it.
    pub fn move_to_loan(&mut self) -> bool {
        if !net::prepare_loans() {
            return false;
        }
        if blocks::is_of_source(self.as_slice().as_ptr()) {
            return true;
        }
        let Some(copy) = copy_to_source(self.as_slice(), true) else { return false };
        self.replace_body(copy);
        true
    }

    /// Returns a copy of `body` in memory that other processes can read in place. `None` if it lies
    /// in such memory, or if there is none for it.
    pub fn lendable_copy(body: &[u8]) -> Option<Self> {
        if blocks::is_of_source(body.as_ptr()) {
            return None;
        }
        copy_to_source(body, false)
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

/// Returns a copy of `body` in the source of large blocks, if it has memory for it.
fn copy_to_source(body: &[u8], asked: bool) -> Option<Message> {
    let block = HeapBlock::allocate_from_source(body.len(), asked)?.as_ptr();
    let data = HeapBlock::data(block);
    // SAFETY: a new block of this length.
    unsafe { data.copy_from_nonoverlapping(body.as_ptr(), body.len()) };
    Some(Message::outside(HEAP, data, body.len(), BodyOwner { heap: block }))
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
