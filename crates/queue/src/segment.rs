//! The memory of a chain: buffers, the nodes in them, and a position that moves over the bytes.
//!
//! A **buffer** is one allocation. A **node** is a run of bytes of the chain. The first node of a
//! buffer is at its beginning. A large body by reference is an **external** node: its header and
//! the owned `Message` lie between the bytes of the buffer. A node for the bytes after it follows:
//!
//! ```text
//! buffer  [head|node A|bytes of A ......|external node, Message|node B|bytes of B ...........]
//!               A ----------------------> external -----------> B ------------> next buffer's node
//! ```
//!
//! So a buffer is finished when the consumer goes from one of its nodes to a node of another
//! buffer. An external node holds exactly one frame body. `end` is null while the producer may
//! still append to the node.

use crate::message::Message;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, Ordering};
use tautline_mem::blocks;
use tautline_mem::copy::{copy_wide, copy_words};

/// Size of a chain's first buffer, which is the only buffer of a chain with little traffic.
pub(super) const FIRST: usize = if cfg!(loom) { SMALL } else { 256 };
/// Minimum size of the very first buffer of one chain of many. Most of these chains carry only a
/// greeting.
pub(super) const LEAST: usize = if cfg!(loom) { SMALL } else { 96 };
/// Minimum size of a buffer that is held ready for a read.
pub(super) const SMALL: usize = if cfg!(loom) { size_of::<Buffer>() + 48 } else { 4096 };
/// Size of the buffers of a busy chain.
pub(super) const LARGE: usize = if cfg!(loom) { size_of::<Buffer>() + 48 } else { 65536 };
/// If fewer bytes than this are left behind an external node, no node is made for them.
const MIN_TAIL_NODE: usize = if cfg!(loom) { 24 } else { 256 };

const ALIGN: usize = blocks::ALIGN;
/// Maximum number of bytes that `place_external` needs.
pub(super) const EXTERNAL_NODE_SPACE: usize =
    ALIGN + size_of::<External>() + size_of::<Node>() + MIN_TAIL_NODE;

/// The beginning of an allocation.
#[repr(C, align(16))]
pub(super) struct Buffer {
    size: usize,
    #[cfg(loom)]
    shadow: Box<[UnsafeCell<()>]>,
    node: Node,
}

/// A run of bytes of the chain.
#[repr(C)]
pub(super) struct Node {
    /// The next node, set before `end`. The consumer reads it only for published bytes, see the
    /// module's invariants.
    // Relaxed: behind the tail: set before the bytes in the next node are published. Own, for the
    // producer.
    pub(super) next: AtomicPtr<Node>,
    /// Address behind the last byte; null while the producer may append to the node.
    // Relaxed: behind the tail: null, or the end of the bytes; in both cases the consumer stops at
    // the end of the published bytes. Own, for the producer.
    pub(super) end: AtomicPtr<u8>,
    /// Address of the first byte.
    pub(super) start: *mut u8,
    /// The allocation that contains this node.
    pub(super) buffer: *mut Buffer,
    /// True if this is the first field of an `External`.
    pub(super) external: bool,
    /// In the first node of a buffer: true if the buffer contains secrets, which must be wiped
    /// before its memory is used for other data.
    pub(super) wipe: bool,
}

/// A node whose bytes are the body of an owned message.
#[repr(C)]
struct External {
    node: Node,
    message: UnsafeCell<Message>,
}

impl Buffer {
    /// Returns a new buffer of `size` bytes in total, with its node open and empty, or `None` if
    /// memory is exhausted. The bytes behind the head are not initialised.
    pub(super) fn allocate(size: usize) -> Option<*mut Buffer> {
        #[cfg(all(test, not(loom)))]
        scarce::take()?;
        let buffer: *mut Buffer = blocks::allocate(size).cast();
        if buffer.is_null() {
            return None;
        }
        let start: *mut u8 = buffer.wrapping_add(1).cast();
        let head = Buffer {
            size,
            #[cfg(loom)]
            shadow: (0..size).map(|_| UnsafeCell::new(())).collect(),
            node: Node::open(start, buffer),
        };
        // SAFETY: the beginning of the allocation, which is aligned like every block.
        unsafe { buffer.write(head) };
        Some(buffer)
    }

    /// Returns the first node.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn node(buffer: *mut Buffer) -> *mut Node {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*buffer).node }
    }

    /// Returns the size of the whole allocation.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn size(buffer: *mut Buffer) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (*buffer).size }
    }

    /// Returns the address one past the last byte of the allocation.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn limit(buffer: *mut Buffer) -> *mut u8 {
        // SAFETY: the allocation is `size` bytes long.
        unsafe { buffer.cast::<u8>().add((*buffer).size) }
    }

    /// Marks the buffer as secret: everything written to it from now on is wiped when the buffer
    /// ends.
    ///
    /// # Safety
    /// The buffer belongs to the caller, and all its bytes are unpublished.
    pub(super) unsafe fn keep_secret(buffer: *mut Buffer) {
        // SAFETY: the caller's promise.
        unsafe { (*buffer).node.wipe = true };
    }

    /// Overwrites the room for bytes, in a way that is not optimised away.
    ///
    /// # Safety
    /// The caller is the only user of the buffer.
    unsafe fn wipe(buffer: *mut Buffer) {
        // SAFETY: the caller's promise.
        let (mut at, limit) = (buffer.wrapping_add(1).cast::<u8>(), unsafe { Buffer::limit(buffer) });
        while at < limit {
            // SAFETY: behind the head and before the limit.
            unsafe { at.write_volatile(0) };
            at = at.wrapping_add(1);
        }
    }

    /// Resets a finished buffer to its initial state.
    ///
    /// # Safety
    /// The caller is the only user of the buffer.
    pub(super) unsafe fn reset(buffer: *mut Buffer) {
        // SAFETY: the caller's promise.
        let node = unsafe { &(*buffer).node };
        node.next.store(std::ptr::null_mut(), Ordering::Relaxed);
        node.end.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

impl Node {
    fn open(start: *mut u8, buffer: *mut Buffer) -> Node {
        Node {
            next: AtomicPtr::new(std::ptr::null_mut()),
            end: AtomicPtr::new(std::ptr::null_mut()),
            start,
            buffer,
            external: false,
            wipe: false,
        }
    }

    /// Releases a node that is no longer used. Returns the next node, if there is one, and the
    /// finished buffer, if this was its last node. Drops the message of an external node.
    ///
    /// # Safety
    /// `node` and the next one are valid, and `node` is not used again.
    #[inline]
    pub(super) unsafe fn release(node: *mut Node) -> (*mut Node, Option<*mut Buffer>) {
        // SAFETY: the caller's promise.
        let this = unsafe { &*node };
        let next = this.next.load(Ordering::Relaxed);
        if this.external {
            // SAFETY: as just seen.
            drop(unsafe { Node::take_message(node) });
        }
        // SAFETY: the caller's promise.
        let stays = !next.is_null() && unsafe { (*next).buffer } == this.buffer;
        (next, (!stays).then_some(this.buffer))
    }

    /// Takes the message of an external node, leaving an empty one.
    ///
    /// # Safety
    /// `node` is an external node, and no other thread looks at its message.
    pub(super) unsafe fn take_message(node: *mut Node) -> Message {
        // SAFETY: an external node is the first field of an `External`, and `node` may access all
        // of its buffer.
        unsafe { (*node.cast::<External>()).message.with_mut(|message| std::mem::take(&mut *message)) }
    }
}

/// Writes an external node for `message` at `at`, without the sender's properties
/// (`Message::clear_properties`), and an open node for the bytes behind it. If there is no room,
/// returns `None` and leaves the message alone.
///
/// # Safety
/// `at` lies in `buffer`, and everything behind it is unused.
pub(super) unsafe fn place_external(
    buffer: *mut Buffer,
    at: *mut u8,
    message: &mut Message,
) -> Option<(*mut Node, *mut Node)> {
    let skip = at.addr().next_multiple_of(ALIGN) - at.addr();
    let need = skip + size_of::<External>() + size_of::<Node>() + MIN_TAIL_NODE;
    // SAFETY: the caller's promise.
    if unsafe { Buffer::limit(buffer) }.addr() - at.addr() < need {
        return None;
    }
    let mut message = std::mem::take(message);
    message.clear_properties();
    let (start, len) = (message.data_ptr(), message.len());
    let end = AtomicPtr::new(start.wrapping_add(len));
    let node = Node { end, external: true, ..Node::open(start, buffer) };
    let external: *mut External = at.wrapping_add(skip).cast();
    let behind: *mut Node = external.wrapping_add(1).cast();
    // SAFETY: both lie in the `need` bytes behind `at`, which are ours; alignment as computed (a
    // multiple of 16 is enough for both, and the size of `External` is a multiple of a node's
    // alignment).
    unsafe { external.write(External { node, message: UnsafeCell::new(message) }) };
    // SAFETY: as above.
    unsafe { behind.write(Node::open(behind.wrapping_add(1).cast(), buffer)) };
    Some((external.cast(), behind))
}

/// Makes allocations of buffers fail on this thread.
#[cfg(all(test, not(loom)))]
pub(super) mod scarce {
    use std::cell::Cell;

    thread_local!(static LEFT: Cell<usize> = const { Cell::new(usize::MAX) });

    /// Allows at most `buffers` allocations while `work` runs.
    pub(in super::super) fn with<R>(buffers: usize, work: impl FnOnce() -> R) -> R {
        LEFT.set(buffers);
        let result = work();
        LEFT.set(usize::MAX);
        result
    }

    pub(super) fn take() -> Option<()> {
        LEFT.set(LEFT.get().checked_sub(1)?);
        Some(())
    }
}

/// Frees one buffer. Messages of external nodes in it must have been taken.
///
/// # Safety
/// The buffer is not in use.
pub(super) unsafe fn free(buffer: *mut Buffer) {
    // SAFETY: the caller's promise.
    let head = unsafe { &*buffer };
    let (size, wipe) = (head.size, head.node.wipe);
    if wipe {
        // SAFETY: the caller's promise.
        unsafe { Buffer::wipe(buffer) };
    }
    #[cfg(loom)]
    // SAFETY: for the last time.
    unsafe {
        (&raw mut (*buffer).shadow).drop_in_place();
    }
    // SAFETY: allocated with exactly this size.
    unsafe { blocks::free(buffer.cast(), size) };
}

/// Frees a node and all following nodes, with their messages and buffers.
///
/// # Safety
/// No thread uses `first` or a node after it.
pub(super) unsafe fn free_chain(first: *mut Node) {
    let mut node = first;
    while !node.is_null() {
        // SAFETY: the nodes of a chain are valid until their buffer is freed, which happens after
        // its last one here.
        let (next, finished) = unsafe { Node::release(node) };
        if let Some(buffer) = finished {
            // SAFETY: this was its last node.
            unsafe { free(buffer) };
        }
        node = next;
    }
}

/// A place between two bytes of a chain. Can be copied freely. Moves over bytes that the caller
/// knows to be visible.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) node: *mut Node,
    pub(super) at: *mut u8,
}

impl Position {
    /// The place before any node.
    pub(super) const NOWHERE: Position = Position { node: std::ptr::null_mut(), at: std::ptr::null_mut() };

    /// Moves to the node that holds the next byte. Returns how many of `visible` bytes are
    /// contiguous there.
    ///
    /// # Safety
    /// At least one and at least `visible` bytes behind this position are visible to the caller and
    /// not released.
    #[inline]
    pub(super) unsafe fn next_run(&mut self, visible: u64) -> usize {
        loop {
            // SAFETY: the position is in a valid node.
            let node = unsafe { &*self.node };
            let end = node.end.load(Ordering::Relaxed);
            if end.is_null() {
                return visible as usize;
            }
            let left = end.addr() - self.at.addr();
            if left > 0 {
                return visible.min(left as u64) as usize;
            }
            self.node = node.next.load(Ordering::Relaxed);
            // SAFETY: at the end of a node, the visible bytes lie in a later one, which was linked
            // before they were published.
            self.at = unsafe { (*self.node).start };
        }
    }

    /// Moves forward by `n` bytes. May stop at the end of a node.
    ///
    /// # Safety
    /// At least `n` bytes behind this position are visible to the caller and not released.
    pub(super) unsafe fn skip(&mut self, mut n: u64) {
        while n > 0 {
            // SAFETY: the caller's promise.
            let run = unsafe { self.next_run(n) };
            self.at = self.at.wrapping_add(run);
            n -= run as u64;
        }
    }

    /// Hands the next `n` bytes to `put`, piece by piece, and moves over them.
    ///
    /// # Safety
    /// At least `n` bytes behind this position are visible to the caller and not released. The
    /// slices are used only as long as their nodes are not released.
    pub(super) unsafe fn pieces<'a>(&mut self, mut n: u64, mut put: impl FnMut(&'a [u8])) {
        while n > 0 {
            // SAFETY: the caller's promise.
            let piece = unsafe { self.piece(n) };
            put(piece);
            self.at = self.at.wrapping_add(piece.len());
            n -= piece.len() as u64;
        }
    }

    /// Returns the contiguous part of the next `n` bytes.
    ///
    /// # Safety
    /// At least one and at least `n` bytes behind this position are visible to the caller and not
    /// released. The slice is used only as long as its node is not released.
    #[inline]
    pub(super) unsafe fn piece<'a>(&mut self, n: u64) -> &'a [u8] {
        // SAFETY: the caller's promise.
        let run = unsafe { self.next_run(n) };
        trace::read(self.node, self.at, run);
        // SAFETY: `run` visible bytes lie at `at`.
        unsafe { std::slice::from_raw_parts(self.at, run) }
    }

    /// Copies the next bytes to `out` and moves over them.
    ///
    /// # Safety
    /// At least `out.len()` bytes behind this position are visible to the caller and not released.
    pub(super) unsafe fn copy(&mut self, out: &mut [u8]) {
        // SAFETY: the caller's promise.
        unsafe { self.copy_to(out.as_mut_ptr(), out.len()) };
    }

    /// Copies the next `n` bytes to `out`, which may be uninitialised, and moves over them.
    ///
    /// # Safety
    /// At least `n` bytes behind this position are visible to the caller and not released. `out` is
    /// valid for writes of `n` bytes, and does not overlap them.
    pub(super) unsafe fn copy_to(&mut self, mut out: *mut u8, n: usize) {
        let put = |piece: &[u8]| {
            // SAFETY: the pieces are `n` bytes in total.
            unsafe { out.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
            out = out.wrapping_add(piece.len());
        };
        // SAFETY: the caller's promise.
        unsafe { self.pieces(n as u64, put) };
    }
}

/// Copies a body that was stored long ago, by the fastest method for its length.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_body(from: *const u8, to: *mut u8, n: usize) {
    if n < 32 {
        // SAFETY: the caller's promise.
        unsafe { copy_words(from, to, n) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_wide(from, to, n) };
    }
}

/// Tells loom which bytes of a buffer are read and written, so that it finds a missing ordering.
/// Without loom, these functions are empty.
pub(super) mod trace {
    use super::Node;

    #[cfg(not(loom))]
    #[inline(always)]
    pub(in super::super) fn read(_: *mut Node, _: *const u8, _: usize) {}

    #[cfg(not(loom))]
    #[inline(always)]
    pub(in super::super) fn wrote(_: *mut Node, _: *const u8, _: usize) {}

    #[cfg(loom)]
    pub(in super::super) fn read(node: *mut Node, at: *const u8, n: usize) {
        cells(node, at, n, |cell| cell.with(|_| ()));
    }

    #[cfg(loom)]
    pub(in super::super) fn wrote(node: *mut Node, at: *const u8, n: usize) {
        cells(node, at, n, |cell| cell.with_mut(|_| ()));
    }

    #[cfg(loom)]
    fn cells(node: *mut Node, at: *const u8, n: usize, touch: impl Fn(&super::UnsafeCell<()>)) {
        // SAFETY: the node is in use.
        let buffer = unsafe { (*node).buffer };
        // SAFETY: the buffer is allocated as long as one of its nodes is in use.
        let shadow = unsafe { &(*buffer).shadow };
        let first = at.addr().wrapping_sub(buffer.addr());
        // Bytes of a message by reference lie elsewhere.
        if first < shadow.len() {
            shadow[first..first + n].iter().for_each(touch);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_wiped() {
        let buffer = Buffer::allocate(SMALL).unwrap();
        // SAFETY: the test is the only user of the buffer.
        unsafe {
            Buffer::keep_secret(buffer);
            let (first, last) = ((*Buffer::node(buffer)).start, Buffer::limit(buffer).sub(1));
            first.write(7);
            last.write(7);
            assert!((*buffer).node.wipe);
            Buffer::wipe(buffer);
            assert_eq!((first.read(), last.read()), (0, 0));
            free(buffer);
        }
    }
}
