//! The memory of a chain: buffers, the nodes that lie in them, and a position that walks over the bytes.
//!
//! A **buffer** is one allocation. A **node** is a run of bytes of the chain: the first node of a buffer stands at its beginning.
//! A large body by reference is an **external** node: its header and the owned `Message` lie in place between the bytes of the
//! buffer, followed by a node for the bytes that come after it:
//!
//! ```text
//! buffer  [head|node A|bytes of A ......|external node, Message|node B|bytes of B ...........]
//!               A ----------------------> external -----------> B ------------> next buffer's node
//! ```
//!
//! So a buffer is finished when the consumer goes from one of its nodes to a node of another buffer. An external node holds exactly
//! one frame body. `end` is null while the producer may still append to the node.

use crate::message::{Message, blocks, copy_words, settle};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// Size of a chain's first buffer: a chain over which little goes has no other.
pub(super) const FIRST: usize = if cfg!(loom) { SMALL } else { 512 };
/// Least size of a buffer that is held ready for a read.
pub(super) const SMALL: usize = if cfg!(loom) { size_of::<Buffer>() + 48 } else { 4096 };
/// Size of the buffers of a busy chain.
pub(super) const LARGE: usize = if cfg!(loom) { size_of::<Buffer>() + 48 } else { 65536 };
/// Fewer bytes than this behind an external node are not worth a node.
const REST: usize = if cfg!(loom) { 24 } else { 256 };

const ALIGN: usize = blocks::ALIGN;
/// What `place_external` needs at most.
pub(super) const EXTERNAL_ROOM: usize = ALIGN + size_of::<External>() + size_of::<Node>() + REST;

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
    /// The following node, set before `end`. Read by the consumer only for published bytes, see the module's invariants.
    pub(super) next: AtomicPtr<Node>,
    /// One past the last byte; null while the producer may append.
    pub(super) end: AtomicPtr<u8>,
    /// The first byte.
    pub(super) start: *mut u8,
    /// The allocation that this node lies in.
    pub(super) buffer: *mut Buffer,
    /// This is the first field of an `External`.
    pub(super) external: bool,
    /// Of the first node of a buffer: there are secrets in the buffer, to be wiped before anybody else gets its memory.
    pub(super) wipe: bool,
}

/// A node whose bytes are the body of an owned message.
#[repr(C)]
struct External {
    node: Node,
    message: UnsafeCell<Message>,
}

impl Buffer {
    /// A new buffer of `size` bytes in all, with its node open and empty.
    pub(super) fn allocate(size: usize) -> *mut Buffer {
        // SAFETY: `size` is larger than a `Buffer`, whose fields are all written before anybody sees them.
        unsafe {
            let buffer: *mut Buffer = blocks::allocate(size).cast();
            if buffer.is_null() {
                std::alloc::handle_alloc_error(std::alloc::Layout::new::<Buffer>());
            }
            let start: *mut u8 = buffer.add(1).cast();
            settle(start, size - size_of::<Buffer>());
            (&raw mut (*buffer).size).write(size);
            #[cfg(loom)]
            (&raw mut (*buffer).shadow).write((0..size).map(|_| UnsafeCell::new(())).collect());
            (&raw mut (*buffer).node).write(Node::open(start, buffer));
            buffer
        }
    }

    /// The first node.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn node(buffer: *mut Buffer) -> *mut Node {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*buffer).node }
    }

    /// The size of the whole allocation.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn size(buffer: *mut Buffer) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (*buffer).size }
    }

    /// One past the last byte of the allocation.
    ///
    /// # Safety
    /// `buffer` is allocated.
    pub(super) unsafe fn limit(buffer: *mut Buffer) -> *mut u8 {
        // SAFETY: the allocation is `size` bytes long.
        unsafe { buffer.cast::<u8>().add((*buffer).size) }
    }

    /// From now on what is written to the buffer is wiped at its end.
    ///
    /// # Safety
    /// The buffer is the caller's, and nothing of it is published.
    pub(super) unsafe fn keep_secret(buffer: *mut Buffer) {
        // SAFETY: the caller's promise.
        unsafe { (*buffer).node.wipe = true };
    }

    /// Overwrites the room for bytes, in a way that is not optimised away.
    ///
    /// # Safety
    /// Nobody else uses the buffer.
    unsafe fn wipe(buffer: *mut Buffer) {
        // SAFETY: writes behind the head and before the limit.
        unsafe {
            let (mut at, limit) = (buffer.add(1).cast::<u8>(), Buffer::limit(buffer));
            while at < limit {
                at.write_volatile(0);
                at = at.add(1);
            }
        }
    }

    /// Makes a finished buffer as good as new.
    ///
    /// # Safety
    /// Nobody else uses the buffer.
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

    /// Takes the message of an external node, leaving an empty one.
    ///
    /// # Safety
    /// `node` is an external node, and nobody else looks at its message.
    pub(super) unsafe fn take_message(node: *mut Node) -> Message {
        // SAFETY: an external node is the first field of an `External`, and `node` may access all of its buffer.
        unsafe { (*node.cast::<External>()).message.with_mut(|message| std::mem::take(&mut *message)) }
    }
}

/// Writes an external node for `message` at `at`, and an open node for the bytes behind it. `None` if there is no room.
///
/// # Safety
/// `at` lies in `buffer`, and nothing behind it is in use.
pub(super) unsafe fn place_external(
    buffer: *mut Buffer,
    at: *mut u8,
    message: &mut Message,
) -> Option<(*mut Node, *mut Node)> {
    let skip = at.addr().next_multiple_of(ALIGN) - at.addr();
    let need = skip + size_of::<External>() + size_of::<Node>() + REST;
    // SAFETY: all writes lie in the `need` bytes behind `at`, which are ours; alignment as computed (a multiple of 16 is enough for
    // both, and the size of `External` is a multiple of a node's alignment).
    unsafe {
        if Buffer::limit(buffer).addr() - at.addr() < need {
            return None;
        }
        let mut message = std::mem::take(message);
        let (start, len) = (message.data_ptr(), message.len());
        let external: *mut External = at.add(skip).cast();
        let behind: *mut Node = external.add(1).cast();
        external.write(External {
            node: Node {
                next: AtomicPtr::new(std::ptr::null_mut()),
                end: AtomicPtr::new(start.add(len)),
                start,
                buffer,
                external: true,
                wipe: false,
            },
            message: UnsafeCell::new(message),
        });
        behind.write(Node::open(behind.add(1).cast(), buffer));
        Some((external.cast(), behind))
    }
}

/// Frees one buffer. Messages of external nodes in it must have been taken.
///
/// # Safety
/// Nobody uses the buffer.
pub(super) unsafe fn free(buffer: *mut Buffer) {
    // SAFETY: allocated with just this size.
    unsafe {
        let size = (*buffer).size;
        if (*buffer).node.wipe {
            Buffer::wipe(buffer);
        }
        #[cfg(loom)]
        (&raw mut (*buffer).shadow).drop_in_place();
        blocks::free(buffer.cast(), size);
    }
}

/// Frees a node and all that follow, with their messages, and every buffer they lie in.
///
/// # Safety
/// Nobody uses any of them.
pub(super) unsafe fn free_chain(first: *mut Node) {
    let mut node = first;
    while !node.is_null() {
        // SAFETY: the nodes of a chain are valid until their buffer is freed, which happens after its last one here.
        unsafe {
            let next = (*node).next.load(Ordering::Relaxed);
            let buffer = (*node).buffer;
            if (*node).external {
                drop(Node::take_message(node));
            }
            if next.is_null() || (*next).buffer != buffer {
                free(buffer);
            }
            node = next;
        }
    }
}

/// A place between two bytes of a chain. Copied freely; moves over bytes that the caller knows to be visible.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) node: *mut Node,
    pub(super) at: *mut u8,
}

impl Position {
    /// Before any node.
    pub(super) const NOWHERE: Position = Position { node: std::ptr::null_mut(), at: std::ptr::null_mut() };

    /// Goes to the node that holds the next byte, and says how many of `visible` bytes lie together there.
    ///
    /// # Safety
    /// At least one and at least `visible` bytes behind this position are visible to the caller and not given up.
    #[inline]
    pub(super) unsafe fn run(&mut self, visible: u64) -> usize {
        // SAFETY: the position is in a valid node. If it is at its end, the visible bytes lie in a later node, which was linked
        // before they were published.
        unsafe {
            loop {
                let end = (*self.node).end.load(Ordering::Relaxed);
                if end.is_null() {
                    return visible as usize;
                }
                let left = end.addr() - self.at.addr();
                if left > 0 {
                    return visible.min(left as u64) as usize;
                }
                self.node = (*self.node).next.load(Ordering::Relaxed);
                self.at = (*self.node).start;
            }
        }
    }

    /// Moves on by `n` bytes. May stop at the end of a node.
    ///
    /// # Safety
    /// As for `run`, for `n` bytes.
    pub(super) unsafe fn skip(&mut self, mut n: u64) {
        while n > 0 {
            // SAFETY: the caller's promise.
            unsafe {
                let run = self.run(n);
                self.at = self.at.add(run);
                n -= run as u64;
            }
        }
    }

    /// Hands the next `n` bytes to `put`, piece by piece, and moves over them.
    ///
    /// # Safety
    /// As for `run`, for `n` bytes; the slices are valid as long as their nodes are not given up.
    pub(super) unsafe fn pieces<'a>(&mut self, mut n: u64, mut put: impl FnMut(&'a [u8])) {
        while n > 0 {
            // SAFETY: the caller's promise: `run` visible bytes lie at `at`.
            unsafe {
                let run = self.run(n);
                trace::read((*self.node).buffer, self.at, run);
                put(std::slice::from_raw_parts(self.at, run));
                self.at = self.at.add(run);
                n -= run as u64;
            }
        }
    }

    /// Copies the next bytes to `out` and moves over them.
    ///
    /// # Safety
    /// As for `run`, for `out.len()` bytes.
    pub(super) unsafe fn copy(&mut self, out: &mut [u8]) {
        let mut done = 0;
        // SAFETY: the caller's promise.
        unsafe {
            self.pieces(out.len() as u64, |piece| {
                out[done..done + piece.len()].copy_from_slice(piece);
                done += piece.len();
            });
        }
    }
}

/// Copies a body in the way that is fastest for its length.
///
/// # Safety
/// `from` and `to` are valid for `n` bytes and do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_body(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if n < 256 {
            copy_words(from, to, n);
        } else {
            std::ptr::copy_nonoverlapping(from, to, n);
        }
    }
}

/// Tells loom which bytes of a buffer are read and written, so that a missing ordering is found. Nothing otherwise.
pub(super) mod trace {
    use super::Buffer;

    #[cfg(not(loom))]
    #[inline(always)]
    pub(in super::super) fn read(_: *mut Buffer, _: *const u8, _: usize) {}

    #[cfg(not(loom))]
    #[inline(always)]
    pub(in super::super) fn wrote(_: *mut Buffer, _: *const u8, _: usize) {}

    #[cfg(loom)]
    pub(in super::super) fn read(buffer: *mut Buffer, at: *const u8, n: usize) {
        cells(buffer, at, n, |cell| cell.with(|_| ()));
    }

    #[cfg(loom)]
    pub(in super::super) fn wrote(buffer: *mut Buffer, at: *const u8, n: usize) {
        cells(buffer, at, n, |cell| cell.with_mut(|_| ()));
    }

    #[cfg(loom)]
    fn cells(buffer: *mut Buffer, at: *const u8, n: usize, touch: impl Fn(&super::UnsafeCell<()>)) {
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
        let buffer = Buffer::allocate(SMALL);
        // SAFETY: nobody else has the buffer.
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
