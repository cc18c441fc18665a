//! One message part: the body and its properties. This is the object inside C's `zmq_msg_t`.
//!
//! Small bodies are stored in the struct itself. Larger ones are in one reference-counted
//! allocation, in memory of the application with its free function, or in constant memory. A
//! `Message` is 64 bytes with alignment 8, and its first byte is a tag. So the C layer can keep it
//! in place in a `zmq_msg_t` and distinguish a valid message from a closed one or from garbage
//! ([`is_valid_tag`]).
//!
//! Invariants: `tag` says which view of `body` is live; a body outside the struct never moves; the
//! free function of foreign memory runs exactly once, on the thread that drops the last reference.
//! Sharing is explicit ([`Message::share`]): the safe API copies a shared body before it returns
//! `&mut` to it. Only the C layer's [`Message::data_ptr`] gives several messages access to one
//! body.
#![allow(unsafe_code)]

mod loan;
pub use loan::{is_in_use, loan, may_be_loan};
mod memory;
mod metadata;
pub(crate) mod packed;
mod place;
#[cfg(all(test, not(loom)))]
mod tests;

pub use metadata::Metadata;
pub use metadata::limit_properties;

use crate::sync::{Arc, prefetch};
use memory::{ForeignBlock, HeapBlock};
use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use tautline_io::net::is_lent;
use tautline_mem::copy::{copy_wide, copy_words};
use tautline_mem::reserve::NoMemory;

/// Releases memory of the application: called with the data pointer and the hint of
/// [`Message::from_foreign`].
pub type FreeFn = unsafe extern "C" fn(data: *mut c_void, hint: *mut c_void);

/// Bodies up to this length are stored inside the struct.
pub const INLINE_MAX: usize = 40;

/// Offset of the tag byte in a message.
pub const TAG_OFFSET: usize = std::mem::offset_of!(Message, tag);

/// Tag that the C layer writes into a closed message.
pub const CLOSED_TAG: u8 = 0;

/// Maximum length of a group name (ZMQ_GROUP_MAX_LENGTH).
pub const GROUP_MAX: usize = 255;

// Consecutive values, so that one comparison distinguishes them from others.
const INLINE: u8 = 0xB1;
const HEAP: u8 = 0xB2;
const FOREIGN: u8 = 0xB3;
const FOREIGN_SHARED: u8 = 0xB4;
const CONSTANT: u8 = 0xB5;

/// True if a tag byte is that of an initialised, not closed message.
#[inline]
pub fn is_valid_tag(tag: u8) -> bool {
    matches!(tag, INLINE..=CONSTANT)
}

/// One message part. Its alignment is that of a pointer, like `zmq_msg_t`.
#[repr(C)]
pub struct Message {
    tag: u8,
    more: bool,
    /// ZMQ_SHARED: true if this body was ever shared. As in libzmq it stays set even after the
    /// other messages are gone.
    shared: bool,
    /// Length of an inline body.
    inline_len: u8,
    routing_id: u32,
    metadata: Option<Arc<Metadata>>,
    group: Option<Arc<CString>>,
    body: Body,
}

// loom's Arc is larger than std's.
#[cfg(not(loom))]
const _: () =
    assert!(size_of::<Message>() <= 64 && align_of::<Message>() == align_of::<usize>() && TAG_OFFSET == 0);
const _: () = assert!(std::mem::offset_of!(Message, metadata) == 8, "`write_head` writes what is before");

#[repr(C)]
#[derive(Clone, Copy)]
union Body {
    inline: [MaybeUninit<u8>; INLINE_MAX],
    outside: IndirectBody,
}

/// A body outside the struct, for every tag but INLINE.
#[repr(C)]
#[derive(Clone, Copy)]
struct IndirectBody {
    data: *mut u8,
    len: usize,
    owner: BodyOwner,
}

/// HEAP and FOREIGN_SHARED: the counted block. FOREIGN: the free function, not yet shared.
/// CONSTANT: unused.
#[repr(C)]
#[derive(Clone, Copy)]
union BodyOwner {
    heap: *mut HeapBlock,
    foreign: (FreeFn, *mut c_void),
    shared: *mut ForeignBlock,
    nothing: (),
}

// SAFETY: every pointer in a message is either owned by it alone or by a block with an atomic
// reference count; `&Message` only reads. Memory of the application is handed over by
// `from_foreign`, whose caller promises that any thread may use and free it.
unsafe impl Send for Message {}
// SAFETY: as above; `&Message` never writes, not even a count.
unsafe impl Sync for Message {}

impl Message {
    /// An empty message.
    #[inline]
    pub const fn new() -> Self {
        Message::with_body(INLINE, Body { inline: [MaybeUninit::uninit(); INLINE_MAX] })
    }

    #[inline]
    fn outside(tag: u8, data: *mut u8, len: usize, owner: BodyOwner) -> Self {
        Message::with_body(tag, Body { outside: IndirectBody { data, len, owner } })
    }

    /// A message with a body and default properties.
    #[inline]
    const fn with_body(tag: u8, body: Body) -> Self {
        Message {
            tag,
            more: false,
            shared: false,
            inline_len: 0,
            routing_id: 0,
            metadata: None,
            group: None,
            body,
        }
    }

    /// A copy of `bytes`.
    #[inline]
    pub fn from_slice(bytes: &[u8]) -> Self {
        match Message::try_from_slice(bytes) {
            Some(message) => message,
            None => Message::from_vec(bytes.to_vec()),
        }
    }

    /// A copy of `bytes`, or `None` if memory is exhausted.
    #[inline]
    pub fn try_from_slice(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the whole body is written below.
        let mut message = unsafe { Message::uninit(bytes.len()) }?;
        // SAFETY: a new message of exactly this length, which owns its body.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.data_ptr(), bytes.len()) };
        Some(message)
    }

    /// A message of `len` uninitialised bytes, or `None` if memory is exhausted.
    ///
    /// # Safety
    /// Every byte of the body is written, through [`Message::data_ptr`], before anything reads it.
    #[inline]
    pub(crate) unsafe fn uninit(len: usize) -> Option<Self> {
        if len <= INLINE_MAX {
            let mut message = Message::new();
            message.inline_len = len as u8;
            return Some(message);
        }
        let block = HeapBlock::allocate(len)?.as_ptr();
        Some(Message::outside(HEAP, HeapBlock::data(block), len, BodyOwner { heap: block }))
    }

    /// Takes over the bytes of a vector. Large ones are not copied.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_MAX {
            return Message::from_slice(&bytes);
        }
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        let capacity = std::ptr::without_provenance_mut(bytes.capacity());
        // SAFETY: we own the vector's memory now, and `free_vec` rebuilds the vector from pointer
        // and capacity. Any thread may do so.
        unsafe { Message::from_foreign(bytes.as_mut_ptr(), bytes.len(), Some(memory::free_vec), capacity) }
    }

    /// A message whose body is the bytes of `owner`. A large body is not copied. Writing to the
    /// message copies the body. The owner is dropped with the last message that refers to the body.
    pub fn from_owner<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Self {
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: just allocated, and not freed before the block below. From now on it does not
        // move, and only `&` references to it exist.
        let bytes = unsafe { (*owner).as_ref() };
        let (data, len) = (bytes.as_ptr().cast_mut(), bytes.len());
        if len <= INLINE_MAX {
            let message = Message::from_slice(bytes);
            // SAFETY: the box from above, whose bytes are copied.
            drop(unsafe { Box::from_raw(owner) });
            return message;
        }
        let block = ForeignBlock::boxed(data, memory::free_owner::<T>, owner.cast(), false);
        Message::outside(FOREIGN_SHARED, data, len, BodyOwner { shared: block })
    }

    /// A message whose body is constant memory.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        let outside = IndirectBody {
            data: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
            owner: BodyOwner { nothing: () },
        };
        Message::with_body(CONSTANT, Body { outside })
    }

    /// A message whose body is memory of the application.
    ///
    /// # Safety
    /// `data` is valid for `len` bytes until `free` was called, or for ever if there is no `free`;
    /// any thread may read, write (with `free` only) and free it.
    pub unsafe fn from_foreign(data: *mut u8, len: usize, free: Option<FreeFn>, hint: *mut c_void) -> Self {
        // An empty body may come with a null pointer, which a slice must not have.
        let data = if data.is_null() && free.is_none() { std::ptr::dangling_mut() } else { data };
        match free {
            Some(free) => Message::outside(FOREIGN, data, len, BodyOwner { foreign: (free, hint) }),
            None => Message::outside(CONSTANT, data, len, BodyOwner { nothing: () }),
        }
    }

    /// Replaces the body by a copy of `bytes`, in place: moving a newly written message would wait
    /// for the stores. All other fields are reset. The metadata stays, because the next call of
    /// [`Message::replace_metadata`] usually sets the same value. If there is no memory, the
    /// message is empty.
    #[inline]
    pub(crate) fn assign(&mut self, bytes: &[u8]) -> Result<(), NoMemory> {
        let len = bytes.len();
        if len <= INLINE_MAX {
            self.clear_body();
            // SAFETY: it fits, and `bytes` does not overlap, because `self` is borrowed mutably.
            unsafe { copy_words(bytes.as_ptr(), self.data_ptr(), len) };
            self.inline_len = len as u8;
            return Ok(());
        }
        if self.keeps_block(len) {
            self.more = false;
            self.shared = false;
            self.routing_id = 0;
            if self.group.is_some() {
                self.group = None;
            }
        } else {
            self.clear_body();
            let block = HeapBlock::allocate(len).ok_or(NoMemory)?.as_ptr();
            self.body.outside =
                IndirectBody { data: HeapBlock::data(block), len, owner: BodyOwner { heap: block } };
            self.tag = HEAP;
        }
        self.body.outside.len = len;
        // SAFETY: the block has room for `len` bytes, more than `INLINE_MAX`, and no other message
        // refers to it.
        unsafe { copy_wide(bytes.as_ptr(), self.body.outside.data, len) };
        Ok(())
    }

    /// True if the memory of the body can be reused for `len` bytes.
    #[inline]
    fn keeps_block(&self, len: usize) -> bool {
        self.heap().is_some_and(|block| block.fits_closely(len) && block.is_unique())
    }

    /// The block of a body on the heap.
    #[inline(always)]
    fn heap(&self) -> Option<&HeapBlock> {
        // SAFETY: the tag says that there is a block, and it lives while we hold a reference.
        if self.tag == HEAP { Some(unsafe { &*self.body.outside.owner.heap }) } else { None }
    }

    /// The block of application memory that was shared.
    #[inline(always)]
    fn foreign(&self) -> Option<&ForeignBlock> {
        // SAFETY: as in `heap`.
        if self.tag == FOREIGN_SHARED { Some(unsafe { &*self.body.outside.owner.shared }) } else { None }
    }

    /// The view of a body outside the struct.
    #[inline(always)]
    fn indirect_body(&self) -> Option<IndirectBody> {
        // SAFETY: the tag says that this view is live.
        if self.tag == INLINE { None } else { Some(unsafe { self.body.outside }) }
    }

    /// Sets the metadata.
    #[inline]
    pub fn replace_metadata(&mut self, metadata: Option<&Arc<Metadata>>) {
        let same = match (&self.metadata, metadata) {
            (Some(mine), Some(theirs)) => Arc::ptr_eq(mine, theirs),
            (mine, theirs) => mine.is_none() && theirs.is_none(),
        };
        if !same {
            self.metadata = metadata.map(metadata::acquire);
        }
    }

    /// Makes this an empty message.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.clear_body();
        if let Some(metadata) = self.metadata.take() {
            metadata::release(metadata);
        }
    }

    /// Makes this an empty message, but keeps the metadata.
    #[inline(always)]
    fn clear_body(&mut self) {
        if self.tag != INLINE {
            memory::release(self);
        }
        // SAFETY: an inline body of length 0 needs no initialisation.
        unsafe { Message::write_head(self, INLINE) };
        if self.group.is_some() {
            self.group = None;
        }
    }

    /// The body's length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // SAFETY: `outside` is live for every tag but INLINE.
        if self.tag == INLINE { self.inline_len as usize } else { unsafe { self.body.outside.len } }
    }

    /// True if the body is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        let (data, len) = match self.indirect_body() {
            // Every field of the union is at its start.
            None => ((&raw const self.body).cast::<u8>(), self.inline_len as usize),
            Some(IndirectBody { len: 0, .. }) => return &[],
            Some(IndirectBody { data, len, .. }) => (data.cast_const(), len),
        };
        // SAFETY: inline, the first `inline_len` bytes are initialised, because the code that set
        // the length wrote them. Outside, the memory is valid and initialised as long as this
        // message holds its reference.
        unsafe { std::slice::from_raw_parts(data, len) }
    }

    /// The body for writing. A shared, lent or constant body is copied first.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        if !self.is_unique() {
            let copy = Message::from_slice(self.as_slice());
            self.replace_body(copy);
        }
        let len = self.len();
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the body is initialised, has `len` bytes and belongs to this message alone, see
        // above.
        unsafe { std::slice::from_raw_parts_mut(self.data_ptr(), len) }
    }

    /// Address of the body: `zmq_msg_data`. A write through it to a shared body is visible in all
    /// messages that share it. A constant body must not be written. An inline body moves with the
    /// message.
    #[inline]
    pub fn data_ptr(&mut self) -> *mut u8 {
        match self.indirect_body() {
            Some(outside) => outside.data,
            // Every field of the union is at its start.
            None => (&raw mut self.body).cast(),
        }
    }

    /// True if no other message refers to this body, no other process reads it, and it may be
    /// written.
    fn is_unique(&self) -> bool {
        self.tag != CONSTANT
            && self.heap().is_none_or(|block| block.is_unique() && !is_lent(self.as_slice().as_ptr()))
            && self.foreign().is_none_or(ForeignBlock::is_unique)
    }

    /// Takes the body of `other`, and keeps flags and properties.
    fn replace_body(&mut self, mut other: Message) {
        std::mem::swap(&mut self.tag, &mut other.tag);
        std::mem::swap(&mut self.inline_len, &mut other.inline_len);
        std::mem::swap(&mut self.body, &mut other.body);
        self.shared = false;
    }

    /// Returns a second message with the same body: `zmq_msg_copy`. Bodies outside the struct are
    /// shared, not copied; flags and properties are copied.
    pub fn share(&mut self) -> Message {
        if self.tag == FOREIGN
            && let Some(IndirectBody { data, len, owner }) = self.indirect_body()
        {
            // SAFETY: the tag says which owner is live.
            let (free, hint) = unsafe { owner.foreign };
            let block = ForeignBlock::boxed(data, free, hint, true);
            self.body.outside = IndirectBody { data, len, owner: BodyOwner { shared: block } };
            self.tag = FOREIGN_SHARED;
        }
        // If the body has a reference count, count the new message.
        if let Some(block) = self.heap() {
            block.retain();
        }
        if let Some(block) = self.foreign() {
            block.retain();
        }
        self.shared |= self.tag != INLINE;
        Message {
            tag: self.tag,
            more: self.more,
            shared: self.shared,
            inline_len: self.inline_len,
            routing_id: self.routing_id,
            metadata: self.metadata.clone(),
            group: self.group.clone(),
            body: self.body,
        }
    }

    /// ZMQ_SHARED: true if the body was shared by [`Message::share`], or is constant memory.
    pub fn is_shared(&self) -> bool {
        self.shared || self.tag == CONSTANT
    }

    /// True if the body is outside the struct, so that it can travel without a copy.
    #[inline]
    pub(crate) fn is_movable(&self) -> bool {
        self.tag != INLINE
    }

    /// Returns the body, if it is shorter than `limit` and no thread may be waiting for it to be
    /// freed.
    #[inline(always)]
    pub fn shorter_than(&self, limit: usize) -> Option<&[u8]> {
        let (data, len) = match self.tag {
            INLINE => ((&raw const self.body).cast::<u8>(), usize::from(self.inline_len)),
            // SAFETY: the tag says that this view is live.
            HEAP => unsafe { (self.body.outside.data.cast_const(), self.body.outside.len) },
            _ => return None,
        };
        // SAFETY: as in `as_slice`; the data of a block on the heap is never null.
        if len < limit { Some(unsafe { std::slice::from_raw_parts(data, len) }) } else { None }
    }

    /// True if the body is memory of the application. A thread may be waiting for it to be freed.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        matches!(self.tag, FOREIGN | FOREIGN_SHARED)
    }

    /// True if more parts of the same multipart message follow (ZMQ_MORE).
    #[inline]
    pub fn more(&self) -> bool {
        self.more
    }

    /// Sets [`Message::more`].
    #[inline]
    pub fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    /// Properties of the peer that the message came from.
    #[inline]
    pub fn metadata(&self) -> Option<&Arc<Metadata>> {
        self.metadata.as_ref()
    }

    /// Sets [`Message::metadata`].
    #[inline]
    pub fn set_metadata(&mut self, metadata: Option<Arc<Metadata>>) {
        self.metadata = metadata;
    }

    /// Prefetches the start of a body that may be on the heap, and the header that its release
    /// reads.
    #[inline]
    pub(crate) fn prefetch_body(data: *const u8) {
        prefetch(data.wrapping_sub(size_of::<HeapBlock>()));
        prefetch(data);
    }

    /// A property of the peer by its name: `zmq_msg_gets`.
    pub fn property(&self, name: &str) -> Option<&CStr> {
        self.metadata.as_ref()?.get(name)
    }

    /// The peer of a SERVER or PEER socket; 0 for no peer.
    #[inline]
    pub fn routing_id(&self) -> u32 {
        self.routing_id
    }

    /// Sets [`Message::routing_id`].
    #[inline]
    pub fn set_routing_id(&mut self, routing_id: u32) {
        self.routing_id = routing_id;
    }

    /// The group of a RADIO or DISH message; empty for no group.
    pub fn group(&self) -> &CStr {
        self.group.as_deref().map_or(c"", CString::as_c_str)
    }

    /// Sets [`Message::group`]. Returns false, without a change, if the name is too long or
    /// contains a NUL.
    pub fn set_group(&mut self, group: &[u8]) -> bool {
        if group.len() > GROUP_MAX {
            return false;
        }
        let Ok(name) = CString::new(group) else { return false };
        self.group = if group.is_empty() { None } else { Some(Arc::new(name)) };
        true
    }

    /// Sets [`Message::group`] to an existing name.
    pub fn share_group(&mut self, group: Arc<CString>) {
        self.group = Some(group);
    }

    /// Drops metadata, routing id and group. These fields belong to the sender's side and do not
    /// travel with the body.
    #[inline]
    pub fn clear_properties(&mut self) {
        self.metadata = None;
        self.group = None;
        self.routing_id = 0;
    }
}

impl Drop for Message {
    #[inline]
    fn drop(&mut self) {
        if self.tag != INLINE {
            memory::release(self);
        }
    }
}

impl Default for Message {
    #[inline]
    fn default() -> Self {
        Message::new()
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Message::from_vec(bytes)
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        Message::from_slice(bytes)
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.tag {
            INLINE => "inline",
            HEAP => "heap",
            FOREIGN | FOREIGN_SHARED => "foreign",
            _ => "constant",
        };
        f.debug_struct("Message")
            .field("kind", &kind)
            .field("len", &self.len())
            .field("more", &self.more)
            .finish()
    }
}
