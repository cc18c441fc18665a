//! The memory behind message bodies: counted heap blocks, counted foreign blocks, and their release
//! with the last reference.
//!
//! Called by `Message` only. A count starts at 1 for the message that made the block. Every `share`
//! adds one.

use super::{FOREIGN, FOREIGN_SHARED, FreeFn, HEAP, IndirectBody, Message};
use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use std::ffi::c_void;
use std::ptr::NonNull;
use tautline_io::net::Loan;
use tautline_mem::blocks::{self, Class};

/// The count before a heap body, and the size of the body's room. The body follows directly,
/// aligned to 16.
#[repr(C, align(16))]
pub(super) struct HeapBlock {
    references: AtomicUsize,
    capacity: BodyCapacity,
}

const _: () = assert!(align_of::<HeapBlock>() <= blocks::ALIGN && size_of::<HeapBlock>() == 16);

/// Bodies up to this length are in small blocks.
const SMALL_BODY: usize = blocks::SMALL_MAX - size_of::<HeapBlock>();

/// The room for the body, in bytes, and in the low byte the class of the whole block.
#[derive(Clone, Copy)]
struct BodyCapacity(u64);

impl BodyCapacity {
    /// Highest number of bytes that can be stored here.
    const MOST: u64 = u64::MAX >> 8;

    fn new(bytes: usize, class: Class) -> BodyCapacity {
        BodyCapacity((bytes as u64) << 8 | u64::from(class.byte()))
    }

    #[inline]
    fn bytes(self) -> usize {
        (self.0 >> 8) as usize
    }

    #[inline]
    fn class(self) -> Class {
        Class::from_byte(self.0 as u8)
    }
}

impl HeapBlock {
    /// Allocates a block with room for `len` uninitialised bytes and one reference. Returns `None`
    /// if memory is exhausted.
    #[inline(always)]
    pub(super) fn allocate(len: usize) -> Option<NonNull<HeapBlock>> {
        if len <= SMALL_BODY
            && let Some(class) = Class::small(size_of::<HeapBlock>() + len)
        {
            return HeapBlock::allocate_of(class, len);
        }
        HeapBlock::allocate_large(len)
    }

    #[inline(never)]
    fn allocate_large(len: usize) -> Option<NonNull<HeapBlock>> {
        if len as u64 > BodyCapacity::MOST {
            return None;
        }
        HeapBlock::allocate_of(Class::of(size_of::<HeapBlock>().checked_add(len)?), len)
    }

    /// Allocates a block for `len` bytes of body. `class` is that of the whole block, header
    /// included.
    #[inline(always)]
    fn allocate_of(class: Class, len: usize) -> Option<NonNull<HeapBlock>> {
        let block = blocks::allocate_of(class, size_of::<HeapBlock>() + len)?;
        // SAFETY: a new block of this size.
        Some(unsafe { HeapBlock::begin(block, class, len) })
    }

    /// Allocates a block from the source of large blocks, for a user that asks for it with `asked`.
    /// Returns `None` if the source has no memory for this length.
    pub(super) fn allocate_from_source(len: usize, asked: bool) -> Option<NonNull<HeapBlock>> {
        let size = size_of::<HeapBlock>().checked_add(len)?;
        let block = blocks::allocate_from_source(size, asked)?;
        // SAFETY: a new block of this size.
        Some(unsafe { HeapBlock::begin(block, Class::of(size), len) })
    }

    /// Writes the header of a new block.
    ///
    /// # Safety
    /// `block` belongs to the caller, and has room for the header and `len` bytes.
    #[inline(always)]
    unsafe fn begin(block: NonNull<u8>, class: Class, len: usize) -> NonNull<HeapBlock> {
        let block: NonNull<HeapBlock> = block.cast();
        let head = HeapBlock { references: AtomicUsize::new(1), capacity: BodyCapacity::new(len, class) };
        // SAFETY: the caller's promise, and the memory is aligned as every block is.
        unsafe { block.write(head) };
        block
    }

    /// Address of the bytes of a block: behind the header.
    #[inline]
    pub(super) fn data(block: *mut HeapBlock) -> *mut u8 {
        block.wrapping_add(1).cast()
    }

    pub(super) fn is_unique(&self) -> bool {
        is_unique(&self.references)
    }

    /// True if a body of `len` bytes fits without much waste.
    #[inline]
    pub(super) fn fits_closely(&self, len: usize) -> bool {
        let room = self.capacity.bytes();
        len <= room && len >= room / 2
    }

    pub(super) fn retain(&self) {
        retain(&self.references);
    }
}

/// Memory of the application that several messages refer to.
pub(super) struct ForeignBlock {
    references: AtomicUsize,
    data: *mut u8,
    free: FreeFn,
    hint: *mut c_void,
    /// True if the only message with this body may write to it.
    writable: bool,
    /// True if the memory is a loan, which `hint` points to.
    lent: bool,
}

impl ForeignBlock {
    /// Creates a block with one reference.
    pub(super) fn boxed(data: *mut u8, free: FreeFn, hint: *mut c_void, writable: bool) -> *mut ForeignBlock {
        Box::into_raw(Box::new(ForeignBlock {
            references: AtomicUsize::new(1),
            data,
            free,
            hint,
            writable,
            lent: false,
        }))
    }

    /// Creates a block for a loan, with one reference.
    pub(super) fn lent(loan: Loan) -> *mut ForeignBlock {
        let data = loan.as_ptr().cast_mut();
        let hint = Box::into_raw(Box::new(loan)).cast();
        let free: FreeFn = free_owner::<Loan>;
        let references = AtomicUsize::new(1);
        Box::into_raw(Box::new(ForeignBlock { references, data, free, hint, writable: false, lent: true }))
    }

    /// The loan, if the memory is one.
    pub(super) fn loan(&self) -> Option<&Loan> {
        // SAFETY: `lent` has stored it, and the last reference to the block frees it.
        self.lent.then(|| unsafe { &*self.hint.cast::<Loan>() })
    }

    pub(super) fn is_lent(&self) -> bool {
        self.lent
    }

    pub(super) fn is_unique(&self) -> bool {
        self.writable && is_unique(&self.references)
    }

    pub(super) fn retain(&self) {
        retain(&self.references);
    }
}

/// Acquire pairs with the Release in `forget`: all accesses of the former sharers to the body are
/// over.
#[inline]
fn is_unique(references: &AtomicUsize) -> bool {
    references.load(Ordering::Acquire) == 1
}

/// Adds a reference.
// Relaxed: own: a thread that retains holds a reference already, so the block exists.
fn retain(references: &AtomicUsize) {
    references.fetch_add(1, Ordering::Relaxed);
}

/// Releases one reference. Returns true for the last one. The Release pairs with the Acquire fence
/// of the last holder.
#[inline(always)]
fn release_reference(references: &AtomicUsize) -> bool {
    // This is the only reference: no other thread can retain, so no read-modify-write is needed.
    // Acquire pairs with the others' Release below.
    if references.load(Ordering::Acquire) == 1 {
        return true;
    }
    release_shared_reference(references)
}

#[cold]
#[inline(never)]
fn release_shared_reference(references: &AtomicUsize) -> bool {
    if references.fetch_sub(1, Ordering::Release) != 1 {
        return false;
    }
    fence(Ordering::Acquire);
    true
}

/// Releases the reference of a message whose body is not inline. Called by its drop, once.
#[inline(always)]
pub(super) fn release(message: &mut Message) {
    if message.tag == HEAP {
        // SAFETY: the tag says that there is a block, and its reference is given up.
        unsafe { release_heap(message.body.outside.owner.heap) };
    } else {
        release_other(message);
    }
}

#[inline(never)]
fn release_other(message: &mut Message) {
    let Some(IndirectBody { data, owner, .. }) = message.indirect_body() else { return };
    match message.tag {
        FOREIGN => {
            // SAFETY: here and below, the tag says which owner is live, and its reference is given
            // up.
            let (free, hint) = unsafe { owner.foreign };
            // SAFETY: it is called with its registered arguments, once.
            unsafe { free(data.cast(), hint) };
        }
        // SAFETY: as above.
        FOREIGN_SHARED => unsafe { release_foreign(owner.shared) },
        _ => {}
    }
}

/// # Safety
/// The caller gives up one of its references.
#[inline(always)]
unsafe fn release_heap(block: *mut HeapBlock) {
    // SAFETY: the caller holds a reference.
    let head = unsafe { &*block };
    if release_reference(&head.references) {
        let (class, size) = (head.capacity.class(), size_of::<HeapBlock>() + head.capacity.bytes());
        // SAFETY: that was the last reference.
        unsafe { block.drop_in_place() };
        // SAFETY: and this is the size of the allocation.
        unsafe { blocks::free_of(class, block.cast(), size) };
    }
}

/// # Safety
/// The caller gives up one of its references.
unsafe fn release_foreign(block: *mut ForeignBlock) {
    // SAFETY: the caller holds a reference.
    if release_reference(unsafe { &(*block).references }) {
        // SAFETY: that was the last one.
        let block = unsafe { Box::from_raw(block) };
        // SAFETY: it is called with its registered arguments.
        unsafe { (block.free)(block.data.cast(), block.hint) };
    }
}

/// The free function of a body that was a vector. The hint is its capacity.
pub(super) unsafe extern "C" fn free_vec(data: *mut c_void, hint: *mut c_void) {
    // SAFETY: `Message::from_vec` took these from a vector of bytes. Bytes need no drop, so the
    // length does not matter.
    drop(unsafe { Vec::from_raw_parts(data.cast::<u8>(), 0, hint.addr()) });
}

/// The free function of a body that belongs to a value of `T`. The hint is its box.
pub(super) unsafe extern "C" fn free_owner<T>(_data: *mut c_void, hint: *mut c_void) {
    // SAFETY: `Message::from_owner` took this from a box of this type.
    drop(unsafe { Box::from_raw(hint.cast::<T>()) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_beyond_capacity_field_is_refused() {
        for len in [u64::MAX, 1 << 63, 1 << 56].into_iter().filter_map(|len| usize::try_from(len).ok()) {
            assert!(HeapBlock::allocate(len).is_none());
        }
    }
}
