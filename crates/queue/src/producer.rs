//! Common part of the two producers of a chain (`FrameWriter`, `ByteFiller`): the growing end.
//!
//! The producer appends at `at`, inside `node`, and links new nodes. Appended bytes are invisible
//! before `publish`, and can be cut off until then.

use super::chain::{self, Handle};
use super::consumer::Consumer;
use super::parcel;
use super::segment::{self, Buffer, FIRST, LARGE, LEAST, Node, Position, SMALL, trace};
use crate::message::Message;
use crate::sync::atomic::Ordering;
use tautline_mem::reserve::NoMemory;

/// Size of a buffer that has room for an external node and for bytes behind it.
pub(super) const WITH_EXTERNAL: usize = {
    let least = size_of::<Buffer>() + segment::EXTERNAL_NODE_SPACE;
    if least > SMALL { least } else { SMALL }
};

/// The producing end of a chain.
pub(super) struct Producer {
    pub(super) shared: Handle,
    /// The node that grows; null until the first byte.
    pub(super) node: *mut Node,
    /// Position of the next byte.
    pub(super) at: *mut u8,
    /// End of the room in `node`.
    pub(super) stop: *mut u8,
    /// Count of all appended bytes = `base` + address of `at` (wrapping).
    base: u64,
    /// Count of all published messages.
    pub(super) messages: u64,
    /// Size of the bodies of all parcels beyond their bytes in the chain.
    pub(super) extra: u64,
    /// End of the published bytes.
    published_end: Position,
    /// The node behind an external `node` in the same buffer, not yet linked.
    unlinked_node: *mut Node,
    /// A buffer held ready, not yet linked.
    spare: *mut Buffer,
    /// Size of the next buffer.
    pub(super) next_size: usize,
    turn: usize,
    /// True for one chain of many: a consumer that keeps up gets small segments.
    pub(super) lean: bool,
    /// Byte count when the chain last had no segment.
    rested: u64,
    /// True if the appended bytes are secret.
    secret: bool,
    /// Limit for the bytes in the chain, published or not.
    most: u64,
}

// SAFETY: the nodes behind the mark, and the buffers held ready, belong to the producing side,
// which one thread uses at a time.
unsafe impl Send for Producer {}

impl Producer {
    pub(super) fn new(shared: Handle) -> Self {
        let (messages, bytes) = chain::start();
        let nothing = std::ptr::null_mut();
        Producer {
            shared,
            node: std::ptr::null_mut(),
            at: nothing,
            stop: nothing,
            base: bytes,
            messages,
            extra: 0,
            published_end: Position::NOWHERE,
            unlinked_node: std::ptr::null_mut(),
            spare: std::ptr::null_mut(),
            next_size: FIRST,
            turn: 0,
            lean: false,
            rested: bytes,
            secret: false,
            most: chain::MOST_BYTES,
        }
    }

    /// Marks everything appended from now on as secret: it is wiped after it was read. To be called
    /// before the first byte.
    pub(super) fn keep_secret(&mut self) {
        debug_assert!(self.node.is_null());
        self.secret = true;
    }

    /// Returns the room left in the current node.
    #[inline(always)]
    pub(super) fn node_space(&self) -> usize {
        self.stop.addr() - self.at.addr()
    }

    /// Returns the count of all appended bytes.
    #[inline(always)]
    pub(super) fn bytes(&self) -> u64 {
        self.base.wrapping_add(self.at.addr() as u64)
    }

    /// True if the current node is external.
    pub(super) fn in_external(&self) -> bool {
        // SAFETY: the current node is valid.
        !self.node.is_null() && unsafe { (*self.node).external }
    }

    /// Returns the end of the published bytes.
    pub(super) fn published_end(&self) -> Position {
        self.published_end
    }

    /// True if there are appended and unpublished bytes.
    #[cfg(test)]
    pub(super) fn unpublished(&self) -> bool {
        self.at != self.published_end.at
    }

    /// Publishes everything appended, as `messages` messages.
    #[inline(always)]
    pub(super) fn publish(&mut self, messages: u64) {
        self.publish_to(Position { node: self.node, at: self.at }, self.bytes(), messages);
    }

    /// Publishes everything before `position`, where the byte count is `bytes`.
    #[inline(always)]
    pub(super) fn publish_to(&mut self, position: Position, bytes: u64, messages: u64) {
        self.messages = self.messages.wrapping_add(messages);
        self.published_end = position;
        self.shared.published.0.store(self.messages, Ordering::Relaxed);
        // Release: the bytes, the nodes and the links before; pairs with the consumer's Acquire
        // load of the tail.
        self.shared.tail.0.store(chain::pack(self.messages, bytes), Ordering::Release);
    }

    /// Returns the number of published bytes that the consumer has not credited.
    #[inline]
    pub(super) fn unconsumed(&self) -> u64 {
        // Relaxed: own, the tail; only the number of the head is needed.
        let tail = self.shared.tail.0.load(Ordering::Relaxed);
        chain::bytes_ahead(tail, self.shared.head.0.load(Ordering::Relaxed))
    }

    /// Returns the number of published messages that the consumer has not credited.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        // Acquire pairs with the Release in `Consumer::credit`.
        self.messages.wrapping_sub(self.shared.credited.0.load(Ordering::Acquire))
    }

    /// Returns an error if the counters cannot distinguish `bytes` more bytes from those that the
    /// consumer has not credited.
    pub(super) fn admits(&self, bytes: u64) -> Result<(), NoMemory> {
        // Relaxed: number.
        let there = self.bytes().wrapping_sub(self.shared.head.0.load(Ordering::Relaxed));
        if there.saturating_add(bytes) <= self.most { Ok(()) } else { Err(NoMemory) }
    }

    /// Sets the limit for the bytes in the chain.
    #[cfg(test)]
    pub(super) fn set_most(&mut self, bytes: u64) {
        self.most = bytes;
    }

    /// Appends a parcel.
    #[inline(always)]
    pub(super) fn append_parcel(&mut self, flags: u8, message: &mut Message) -> Result<(), NoMemory> {
        debug_assert!(message.is_movable() && self.shared.kind.has_parcels());
        if self.node_space() < parcel::FRAME {
            self.grow(parcel::FRAME)?;
        }
        let at = self.at;
        self.extra = self.extra.wrapping_add(parcel::extra(message.len()));
        trace::wrote(self.node, at, parcel::FRAME);
        // SAFETY: there is room for it, and the callers have checked the message.
        unsafe { parcel::put(at, flags, message) };
        self.at = at.wrapping_add(parcel::FRAME);
        Ok(())
    }

    /// Returns the wire size of the published frames that the consumer has not credited. Only a
    /// number.
    pub(super) fn wire_bytes_in_flight(&self) -> u64 {
        let extra = self.extra.wrapping_sub(self.shared.extra.0.load(Ordering::Relaxed));
        self.unconsumed().saturating_add_signed(extra.cast_signed())
    }

    /// Cuts off everything that was appended since the last publication.
    pub(super) fn truncate_to_published(&mut self) {
        if self.shared.kind.has_parcels() && !self.published_end.node.is_null() {
            // Relaxed: own, the tail.
            let published = self.shared.tail.0.load(Ordering::Relaxed);
            let unpublished = chain::bytes_behind(published, self.bytes());
            // SAFETY: the bytes behind the mark are the producer's own, and are cut off below.
            let dropped = unsafe { parcel::drop_all(self.published_end, unpublished) };
            self.extra = self.extra.wrapping_sub(dropped);
        }
        if self.node == self.published_end.node {
            self.at = self.published_end.at;
        } else if !self.published_end.node.is_null() {
            // Relaxed: own, the tail.
            let published = self.shared.tail.0.load(Ordering::Relaxed);
            // SAFETY: the mark is where publishing stopped; the consumer does not go beyond.
            unsafe { self.cut(self.published_end, published) };
        }
    }

    /// Cuts off everything behind `position`, where the byte count is `bytes` (the number of bits
    /// in a tail word is enough).
    ///
    /// # Safety
    /// `position` is at or behind the mark, not inside an external node.
    pub(super) unsafe fn cut(&mut self, position: Position, bytes: u64) {
        let appended = self.bytes();
        // SAFETY: the caller's promise: a valid node. The consumer may read its `end` while it is
        // reset, but uses only the published bytes before it.
        let last = unsafe { &*position.node };
        let mut node = last.next.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if last.external {
            self.stop = position.at;
        } else {
            last.end.store(std::ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: the buffer of a valid node.
            self.stop = unsafe { Buffer::limit(last.buffer) };
        }
        while !node.is_null() {
            // SAFETY: the nodes behind `position` are the producer's own.
            let (next, finished) = unsafe { Node::release(node) };
            if let Some(buffer) = finished.filter(|buffer| *buffer != last.buffer) {
                // SAFETY: its last node was left.
                unsafe { self.keep_or_free(buffer) };
            }
            node = next;
        }
        self.node = position.node;
        self.at = position.at;
        self.unlinked_node = std::ptr::null_mut();
        // The remaining bytes, in 64 bits.
        let bytes = appended.wrapping_sub(chain::bytes_behind(bytes, appended));
        self.base = bytes.wrapping_sub(self.at.addr() as u64);
    }

    /// # Safety
    /// `buffer` is the producer's own, and no longer linked.
    unsafe fn keep_or_free(&mut self, buffer: *mut Buffer) {
        if self.spare.is_null() {
            // SAFETY: the caller's promise.
            unsafe { Buffer::reset(buffer) };
            self.spare = buffer;
        } else {
            // SAFETY: the caller's promise.
            unsafe { segment::free(buffer) };
        }
    }

    /// Continues in a node with room for at least `need` bytes. Even after an error, the current
    /// node may have changed from an external node to the node behind it.
    #[cold]
    pub(super) fn grow(&mut self, need: usize) -> Result<(), NoMemory> {
        if !self.unlinked_node.is_null() {
            self.enter_behind();
            if self.node_space() >= need {
                return Ok(());
            }
        }
        self.grow_by_use();
        // A chain that has released its memory was busy, and may be busy again.
        let first_ever = self.lean && self.node.is_null() && self.bytes() == chain::start().1;
        let size = if first_ever { LEAST } else { self.next_size };
        let least = need + size_of::<Buffer>();
        let buffer = self.buffer(size.max(least)).or_else(|| self.buffer(least)).ok_or(NoMemory)?;
        // SAFETY: `buffer` is fresh.
        unsafe { self.link(Buffer::node(buffer)) };
        Ok(())
    }

    /// Makes the next buffer larger if the current node is well filled. In a lean chain this
    /// happens only if the consumer is that many bytes behind. With larger segments, thousands of
    /// chains would not fit into the caches.
    fn grow_by_use(&mut self) {
        if self.node.is_null() || self.lean && self.unconsumed() < self.next_size as u64 {
            return;
        }
        // SAFETY: the current node is the producer's.
        let node = unsafe { &*self.node };
        let used = self.at.addr() - node.start.addr();
        // SAFETY: the buffer of a valid node.
        if !node.external && used >= unsafe { Buffer::size(node.buffer) } / 2 {
            self.next_size = (self.next_size * 4).min(LARGE);
        }
    }

    /// Returns a buffer of at least `size` bytes: the spare one, a finished one, or a new one.
    /// `None` if memory is exhausted.
    pub(super) fn buffer(&mut self, size: usize) -> Option<*mut Buffer> {
        let buffer = self.any_buffer(size)?;
        if self.secret {
            // SAFETY: not linked yet, so ours alone.
            unsafe { Buffer::keep_secret(buffer) };
        }
        Some(buffer)
    }

    fn any_buffer(&mut self, size: usize) -> Option<*mut Buffer> {
        let spare = std::mem::replace(&mut self.spare, std::ptr::null_mut());
        let used = if spare.is_null() { self.shared.ring.take(&mut self.turn) } else { Some(spare) };
        if let Some(buffer) = used {
            // SAFETY: taken out of the ring or from `spare`: ours alone.
            if unsafe { Buffer::size(buffer) } >= size {
                // SAFETY: as above.
                unsafe { Buffer::reset(buffer) };
                return Some(buffer);
            }
            // SAFETY: as above.
            unsafe { segment::free(buffer) };
        }
        Buffer::allocate(size)
    }

    /// Returns the buffer held ready, of at least `size` bytes. Allocates it if needed.
    pub(super) fn spare(&mut self, size: usize) -> Option<*mut Buffer> {
        let buffer = self.buffer(size)?;
        self.spare = buffer;
        Some(buffer)
    }

    /// Frees the buffer held ready.
    pub(super) fn drop_spare(&mut self) {
        let spare = std::mem::replace(&mut self.spare, std::ptr::null_mut());
        if !spare.is_null() {
            // SAFETY: the spare buffer is ours and not linked.
            unsafe { segment::free(spare) };
        }
    }

    /// Returns the node behind an external one, not linked yet.
    pub(super) fn unlinked_node(&self) -> Option<*mut Node> {
        if self.unlinked_node.is_null() { None } else { Some(self.unlinked_node) }
    }

    /// Continues in the node behind the external one, or else in the spare buffer.
    pub(super) fn enter_ready(&mut self) {
        if !self.unlinked_node.is_null() {
            self.enter_behind();
        } else if !self.spare.is_null() {
            let buffer = std::mem::replace(&mut self.spare, std::ptr::null_mut());
            // SAFETY: the spare buffer is reset and not linked.
            unsafe { self.link(Buffer::node(buffer)) };
        }
    }

    fn enter_behind(&mut self) {
        let behind = std::mem::replace(&mut self.unlinked_node, std::ptr::null_mut());
        // SAFETY: placed behind the current node, not linked yet.
        unsafe { self.link(behind) };
    }

    /// Ends the current node at the current position, and continues in `node`.
    ///
    /// # Safety
    /// `node` is an open, empty node of the producer's own.
    unsafe fn link(&mut self, node: *mut Node) {
        let bytes = self.bytes();
        // SAFETY: the caller's promise.
        let next = unsafe { &*node };
        if self.node.is_null() {
            // Relaxed: behind the tail; the consumer reads it only after bytes were published.
            self.shared.first.store(node, Ordering::Relaxed);
            self.published_end = Position { node, at: next.start };
        } else {
            self.end_node(node);
        }
        self.node = node;
        self.at = next.start;
        // SAFETY: the buffer of a valid node.
        self.stop = unsafe { Buffer::limit(next.buffer) };
        self.base = bytes.wrapping_sub(self.at.addr() as u64);
    }

    /// Ends the current node at the current position. `next` follows it.
    fn end_node(&self, next: *mut Node) {
        // SAFETY: the current node is the producer's.
        let node = unsafe { &*self.node };
        // Relaxed: behind the tail; the consumer follows the link only for bytes published later.
        node.next.store(next, Ordering::Relaxed);
        node.end.store(self.at, Ordering::Relaxed);
    }

    /// Takes `message` and continues in an external node for it. The first `filled` bytes of its
    /// body have already arrived. The current node must not be external.
    pub(super) fn enter_external(&mut self, message: &mut Message, filled: usize) -> Result<(), NoMemory> {
        debug_assert!(message.is_movable() && filled <= message.len() && !self.in_external());
        let (external, behind) = loop {
            // SAFETY: the current node is not external, so its buffer is free behind `at`.
            match unsafe { segment::place_external((*self.node).buffer, self.at, message) } {
                Some(nodes) => break nodes,
                None => {
                    self.grow_by_use();
                    let buffer = self.buffer(WITH_EXTERNAL).ok_or(NoMemory)?;
                    // SAFETY: fresh, and large enough for the next attempt.
                    unsafe { self.link(Buffer::node(buffer)) };
                }
            }
        };
        let bytes = self.bytes().wrapping_add(filled as u64);
        self.end_node(external);
        self.node = external;
        // SAFETY: just placed.
        let body = unsafe { &*external };
        self.at = body.start.wrapping_add(filled);
        // Set from the beginning.
        self.stop = body.end.load(Ordering::Relaxed);
        self.unlinked_node = behind;
        self.base = bytes.wrapping_sub(self.at.addr() as u64);
        Ok(())
    }

    /// Frees the buffers held ready.
    pub(super) fn release_spare(&mut self) {
        self.drop_spare();
        while let Some(buffer) = self.shared.ring.take(&mut self.turn) {
            // SAFETY: no longer in the ring.
            unsafe { segment::free(buffer) };
        }
        self.next_size = FIRST;
    }

    /// Releases all memory if the consumer has finished all appended bytes, which are `consumed`
    /// bytes. The caller holds both ends of the chain. The chain starts anew with the next byte.
    /// Returns true if it released the memory.
    pub(super) fn release_memory(&mut self, consumer: &mut Consumer, consumed: u64) -> bool {
        let bytes = self.bytes();
        // Relaxed: own, the tail.
        let tail = self.shared.tail.0.load(Ordering::Relaxed);
        let all_published = chain::bytes_behind(tail, bytes) == 0;
        let all_consumed = chain::bytes_ahead(tail, consumed) == 0;
        if !(all_published && all_consumed && self.shared.is_same_chain(&consumer.shared)) {
            return false;
        }
        let first = consumer.detach_nodes();
        let size = self.next_size;
        if !first.is_null() {
            // SAFETY: the nodes are unused: all of their bytes are consumed, and both ends forget
            // them here.
            unsafe { segment::free_chain(first) };
        }
        self.node = std::ptr::null_mut();
        self.at = std::ptr::null_mut();
        self.stop = std::ptr::null_mut();
        self.base = bytes;
        self.published_end = Position::NOWHERE;
        self.unlinked_node = std::ptr::null_mut();
        self.release_spare();
        // A chain that fills large segments before it releases its memory will do so again.
        let lately = bytes.wrapping_sub(std::mem::replace(&mut self.rested, bytes));
        self.next_size = if lately < size as u64 / 4 { (size / 4).max(FIRST) } else { size };
        true
    }

    /// True if the chain holds memory that it could release.
    pub(super) fn holds_memory(&self) -> bool {
        !self.node.is_null()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.truncate_to_published();
        self.drop_spare();
    }
}
