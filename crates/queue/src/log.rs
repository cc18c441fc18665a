//! `Log`: one chain of frames that many connections read, for messages that go to many peers.
//!
//! ```text
//! Log (owner encodes, once)  ->  chunk -> chunk -> chunk
//!                               each LogReader (a pump): a place in it, and how far it has written
//! ```
//!
//! The owner appends whole messages to the newest chunk and publishes them with one Release store
//! of `tail`, as in a chain. Each connection has its own `LogReader` and uses it under the lock of
//! its pump, like a queue with a `ByteDrain`: it takes bytes in pieces of any size, and a lost
//! connection goes back to the last whole message. Its [`Progress`] shows how far it has come. The
//! owner uses this to enforce the high-water mark.
//!
//! A chunk is freed or reused when the last reference to it is gone. A reader holds the chunk it is
//! in, each chunk holds the next one, and the log holds a *window* of the newest chunks. If a
//! reader still holds the oldest chunk when the window is full, the owner must detach it. The owner
//! then copies its unsent messages to the connection's own queue ([`LogReader::copy_unsent`]). So a
//! log never grows beyond its window.
//!
//! Invariants, on which the `unsafe` here rests:
//! - Bytes before the published tail are never written again before the chunk is reused. A chunk is
//!   reused only without other references to it.
//! - Bytes behind the tail belong to the log alone. `next` is written once, before any byte of the
//!   next chunk is published.
//! - A message lies in one chunk.

use super::chain;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use crate::sync::{Arc, Padded, UnsafeCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use tautline_mem::copy::copy_words;
use tautline_proto::frame;

#[cfg(all(test, not(loom)))]
mod tests;

/// Size of a chunk in bytes: large enough to be worth a write. Small in a simulation, so that the
/// window is often full.
const CHUNK: usize = match (cfg!(loom), cfg!(simulated)) {
    (true, _) => 40,
    (false, true) => 18 * 1024,
    (false, false) => 64 * 1024,
};
/// Number of chunks in the window.
const WINDOW: usize = if cfg!(any(loom, simulated)) { 2 } else { 16 };
/// Limit for the length of a message with headers.
pub const LONGEST: usize = CHUNK / 2;
/// `Progress` counts the messages that a reader is behind. The largest distance is the window plus
/// the chunk that a reader leaves.
const _: () = assert!(((WINDOW + 1) * CHUNK) as u64 <= chain::COUNTABLE);
/// Value of `Chunk::end` while the log may append bytes to the chunk.
const OPEN: usize = usize::MAX;

/// A piece of the log.
struct Chunk {
    bytes: *mut u8,
    /// The end of the bytes; `OPEN` in the newest chunk.
    // Relaxed: behind the tail: the value from when the bytes that the reader looks for were
    // published, or `OPEN` if they all lie here. Alone, in `reset`.
    end: AtomicUsize,
    /// The next chunk. Written by the log before `end`; read for bytes that are published behind
    /// this chunk.
    next: UnsafeCell<Option<Arc<Chunk>>>,
    #[cfg(loom)]
    shadow: Box<[UnsafeCell<()>]>,
}

// SAFETY: the bytes belong to the chunk. The module's invariants say which end may access which of
// them, and `next`.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new() -> Arc<Chunk> {
        let memory: Box<[MaybeUninit<u8>]> = Box::new_uninit_slice(CHUNK);
        Arc::new(Chunk {
            bytes: Box::into_raw(memory).cast(),
            end: AtomicUsize::new(OPEN),
            next: UnsafeCell::new(None),
            #[cfg(loom)]
            shadow: (0..CHUNK).map(|_| UnsafeCell::new(())).collect(),
        })
    }

    /// Resets the chunk to its initial state.
    fn reset(&mut self) {
        self.end.store(OPEN, Relaxed);
        // SAFETY: `&mut self`: no other thread accesses it.
        self.next.with_mut(|next| unsafe { *next = None });
    }

    /// Returns the next chunk.
    ///
    /// # Safety
    /// Bytes behind this chunk are published and were seen by an Acquire load of the tail.
    unsafe fn next(&self) -> Option<&Arc<Chunk>> {
        // SAFETY: written before those bytes were published, and not again as long as the caller
        // holds this chunk.
        self.next.with(|next| unsafe { (*next).as_ref() })
    }

    /// # Safety
    /// The bytes are published, and were seen by an Acquire load of the tail.
    unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        self.trace(at, len, false);
        // SAFETY: published bytes are not written again as long as the chunk is held.
        unsafe { std::slice::from_raw_parts(self.bytes.add(at), len) }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    fn trace(&self, _: usize, _: usize, _: bool) {}

    /// Tells loom which bytes are read and written.
    #[cfg(loom)]
    fn trace(&self, at: usize, len: usize, write: bool) {
        for cell in &self.shadow[at..at + len] {
            if write { cell.with_mut(|_| ()) } else { cell.with(|_| ()) }
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let memory = std::ptr::slice_from_raw_parts_mut(self.bytes.cast::<MaybeUninit<u8>>(), CHUNK);
        // SAFETY: allocated in `new` with exactly this size. The following chunks are dropped
        // recursively, at most a window of them.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// The published counts: messages and bytes, as in `chain`.
struct LogCounts {
    // Relaxed: own, for the owner, which computes how far a reader is behind.
    tail: Padded<AtomicU64>,
    /// Counts since the beginning, for statistics.
    // Relaxed: number, for statistics.
    messages: AtomicU64,
    // Relaxed: number, for statistics.
    bytes: AtomicU64,
}

/// Progress of one reader.
pub struct Progress {
    shared: Arc<LogCounts>,
    /// Messages and bytes that were taken as a whole. Written by the reader. This number does not
    /// decide about reading or reusing memory.
    // Relaxed: number: chunks are reused by their reference count.
    head: AtomicU64,
}

impl Progress {
    /// Returns the number of published messages that are not completely taken.
    #[inline]
    pub fn pending_messages(&self) -> u64 {
        let tail = self.shared.tail.0.load(Relaxed);
        chain::messages_behind(self.head.load(Relaxed), tail >> chain::BYTE_BITS)
    }

    /// Owner: returns the numbers of messages and bytes published since some start.
    pub fn published(&self) -> (u64, u64) {
        (self.shared.messages.load(Relaxed), self.shared.bytes.load(Relaxed))
    }

    /// Returns the number of bytes that the reader is behind.
    pub fn pending_bytes(&self) -> u64 {
        chain::bytes_behind(self.head.load(Relaxed), self.shared.tail.0.load(Relaxed))
    }
}

/// Length of a log, to check later whether it has grown.
pub struct LogLength(Arc<LogCounts>);

impl LogLength {
    /// Returns a number that changes with every published message.
    pub fn now(&self) -> u64 {
        self.0.tail.0.load(Acquire)
    }
}

/// The owner's end of a log.
pub struct Log {
    shared: Arc<LogCounts>,
    /// The newest chunks, each with the byte count at its beginning.
    window: VecDeque<(Arc<Chunk>, u64)>,
    /// Position of the next byte in the newest chunk.
    at: usize,
    /// Published bytes and messages.
    bytes: u64,
    messages: u64,
}

impl Log {
    /// Returns an empty log without chunks.
    pub fn new() -> Self {
        let (messages, bytes) = chain::start();
        let tail = Padded(AtomicU64::new(chain::pack(messages, bytes)));
        let shared = LogCounts { tail, messages: AtomicU64::new(messages), bytes: AtomicU64::new(bytes) };
        Log { shared: Arc::new(shared), window: VecDeque::new(), at: CHUNK, bytes, messages }
    }

    /// True if a message of `len` bytes, including headers, can be appended now. If not, see
    /// [`Log::next_chunk`].
    #[inline]
    pub fn fits(&self, len: usize) -> bool {
        len <= CHUNK - self.at
    }

    /// Continues in a new chunk. Returns false if the window is full and its oldest chunk is in
    /// use. [`Log::holds_oldest`] is true for the readers that use it.
    #[cold]
    pub fn next_chunk(&mut self) -> bool {
        let used = self.window.len() > 1
            && self.window.front_mut().is_some_and(|(chunk, _)| Arc::get_mut(chunk).is_some());
        let fresh = if used {
            self.window.pop_front().and_then(|(mut chunk, _)| {
                Arc::get_mut(&mut chunk)?.reset();
                Some(chunk)
            })
        } else if self.window.len() < WINDOW {
            None
        } else {
            return false;
        };
        let fresh = fresh.unwrap_or_else(Chunk::new);
        if let Some((last, _)) = self.window.back() {
            // SAFETY: `next` is not read before bytes of the new chunk are published.
            last.next.with_mut(|next| unsafe { *next = Some(fresh.clone()) });
            last.end.store(self.at, Relaxed);
        }
        self.window.push_back((fresh, self.bytes));
        self.at = 0;
        true
    }

    /// True if this reader keeps the oldest chunk of the window in use.
    pub fn holds_oldest(&self, progress: &Progress) -> bool {
        // A reader that has read the oldest chunk to its end still holds that chunk.
        let second = self.window.get(1).map_or(self.bytes, |(_, start)| *start);
        progress.pending_bytes() >= self.bytes.wrapping_sub(second)
    }

    /// Appends a message of one part and publishes it. There must be room for it (`fits`).
    #[inline]
    pub fn append(&mut self, body: &[u8]) {
        let n = body.len();
        let mut header = [0; frame::MAX_HEADER];
        let Some((chunk, _)) = self.window.back().filter(|_| n + frame::MAX_HEADER <= CHUNK - self.at) else {
            return;
        };
        let header_len = if n < 256 {
            header[1] = n as u8;
            2
        } else {
            frame::encode_header(0, n as u64, &mut header)
        };
        chunk.trace(self.at, header_len + n, true);
        let to = chunk.bytes.wrapping_add(self.at);
        if n < 256 {
            // SAFETY: here and below, there is room behind `at` for the longest header and the
            // body, and no other thread touches these bytes.
            unsafe { to.cast::<[u8; 2]>().write([0, n as u8]) };
            // SAFETY: as above.
            unsafe { copy_words(body.as_ptr(), to.wrapping_add(2), n) };
        } else {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), to, header_len) };
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(body.as_ptr(), to.wrapping_add(header_len), n) };
        }
        self.publish(header_len + n);
    }

    /// Appends an encoded message and publishes it. There must be room.
    pub fn append_encoded(&mut self, frames: &[u8]) {
        let Some((chunk, _)) = self.window.back().filter(|_| frames.len() <= CHUNK - self.at) else { return };
        chunk.trace(self.at, frames.len(), true);
        let to = chunk.bytes.wrapping_add(self.at);
        // SAFETY: as in `append`.
        unsafe { std::ptr::copy_nonoverlapping(frames.as_ptr(), to, frames.len()) };
        self.publish(frames.len());
    }

    #[inline]
    fn publish(&mut self, len: usize) {
        self.at += len;
        self.bytes = self.bytes.wrapping_add(len as u64);
        self.messages = self.messages.wrapping_add(1);
        // Release: the bytes, the chunks and the links before; pairs with the Acquire in
        // `LogReader::pending`.
        self.shared.tail.0.store(chain::pack(self.messages, self.bytes), Release);
        self.shared.messages.store(self.messages, Relaxed);
        self.shared.bytes.store(self.bytes, Relaxed);
    }

    /// Returns the length of the log.
    pub fn length(&self) -> LogLength {
        LogLength(self.shared.clone())
    }

    /// Returns the number of published messages.
    #[inline]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the number of published bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a reader of all messages that are published from now on. `None` if the log needs a
    /// new chunk for this and there is none (see [`Log::next_chunk`]).
    pub fn reader(&mut self) -> Option<(LogReader, Arc<Progress>)> {
        if self.window.is_empty() && !self.next_chunk() {
            return None;
        }
        let (chunk, _) = self.window.back()?;
        let word = chain::pack(self.messages, self.bytes);
        let progress = Arc::new(Progress { shared: self.shared.clone(), head: AtomicU64::new(word) });
        let place = LogCursor { chunk: chunk.clone(), at: self.at, bytes: self.bytes };
        let reader = LogReader {
            progress: progress.clone(),
            tail: word,
            taken: place.clone(),
            frame: place.clone(),
            message_end: place,
            messages: self.messages,
        };
        Some((reader, progress))
    }
}

/// A place in the log and its byte count.
#[derive(Clone)]
struct LogCursor {
    chunk: Arc<Chunk>,
    at: usize,
    bytes: u64,
}

impl LogCursor {
    /// Moves to the chunk that holds the next byte. Returns how many of `visible` bytes are
    /// contiguous there.
    ///
    /// # Safety
    /// At least one and at least `visible` bytes behind this place are published, seen by an
    /// Acquire load of the tail.
    unsafe fn next_run(&mut self, visible: u64) -> usize {
        loop {
            let end = self.chunk.end.load(Relaxed);
            if end == OPEN {
                return visible as usize;
            }
            if end > self.at {
                return visible.min((end - self.at) as u64) as usize;
            }
            // SAFETY: the caller's promise: the bytes lie in a later chunk.
            let Some(next) = (unsafe { self.chunk.next().cloned() }) else { return 0 };
            self.chunk = next;
            self.at = 0;
        }
    }

    /// # Safety
    /// At least `n` bytes behind this place are published, seen by an Acquire load of the tail.
    unsafe fn skip(&mut self, mut n: u64) {
        self.bytes = self.bytes.wrapping_add(n);
        while n > 0 {
            // SAFETY: the caller's promise.
            let run = unsafe { self.next_run(n) };
            self.at += run;
            n -= run as u64;
        }
    }

    /// Copies `other`. Does not touch the reference count if `other` is in the same chunk.
    fn set(&mut self, other: &LogCursor) {
        if !Arc::ptr_eq(&self.chunk, &other.chunk) {
            self.chunk = other.chunk.clone();
        }
        (self.at, self.bytes) = (other.at, other.bytes);
    }
}

/// A connection's end of a log.
pub struct LogReader {
    progress: Arc<Progress>,
    /// The tail word as last loaded.
    tail: u64,
    /// Bytes before this place were taken.
    taken: LogCursor,
    /// The frame boundary from which the search for message boundaries continues: `whole <= frame
    /// <= taken`.
    frame: LogCursor,
    /// The end of the last message that was taken as a whole.
    message_end: LogCursor,
    /// Count of messages up to `whole`.
    messages: u64,
}

impl LogReader {
    /// Returns the number of bytes that are published and not taken yet.
    #[inline]
    pub fn pending(&mut self) -> u64 {
        // Acquire pairs with the Release in `Log::publish`.
        self.tail = self.progress.shared.tail.0.load(Acquire);
        chain::bytes_ahead(self.tail, self.taken.bytes)
    }

    fn known_pending_bytes(&mut self) -> u64 {
        match chain::bytes_ahead(self.tail, self.taken.bytes) {
            0 => self.pending(),
            known => known,
        }
    }

    /// Fills `out` with the pending bytes from the current place on. Returns the number of slices
    /// and of their bytes.
    pub fn slices<'a>(&'a mut self, out: &mut [IoSlice<'a>]) -> (usize, u64) {
        let known = self.known_pending_bytes();
        let (mut chunk, mut at): (&Chunk, usize) = (&self.taken.chunk, self.taken.at);
        let (mut count, mut bytes) = (0, 0);
        while count < out.len() && bytes < known {
            let left = known - bytes;
            let end = chunk.end.load(Relaxed);
            if end <= at {
                // SAFETY: `left` bytes behind `at` are published and seen. `self.whole` keeps all
                // chunks from there on, as long as `out` borrows.
                let Some(next) = (unsafe { chunk.next() }) else { break };
                (chunk, at) = (next, 0);
                continue;
            }
            let run = left.min((end - at) as u64) as usize;
            // SAFETY: as above.
            out[count] = IoSlice::new(unsafe { chunk.slice(at, run) });
            at += run;
            bytes += run as u64;
            count += 1;
        }
        (count, bytes)
    }

    /// Appends up to `max` pending bytes to `out`, without taking them.
    pub fn peek_copy(&mut self, max: usize, out: &mut Vec<u8>) -> u64 {
        let mut slices: [IoSlice<'_>; 8] = std::array::from_fn(|_| IoSlice::new(&[]));
        let (n, _) = self.slices(&mut slices);
        let before = out.len();
        for slice in &slices[..n] {
            let room = max - (out.len() - before);
            out.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        (out.len() - before) as u64
    }

    /// Takes `n` of the pending bytes after they were written. Completely written messages count as
    /// progress.
    pub fn advance(&mut self, n: u64) {
        let known = chain::bytes_ahead(self.tail, self.taken.bytes);
        debug_assert!(n <= known);
        let n = n.min(known);
        if n == 0 {
            return;
        }
        // SAFETY: `n` bytes are published, and `tail` was loaded with Acquire.
        unsafe { self.taken.skip(n) };
        if n == known {
            // Publications end at message boundaries.
            self.frame.set(&self.taken);
            self.messages = self.messages.wrapping_add(chain::messages_ahead(self.tail, self.messages));
        } else {
            self.find_message_end();
        }
        self.message_end.set(&self.frame);
        self.progress.head.store(chain::pack(self.messages, self.message_end.bytes), Release);
    }

    /// Skips over the completely taken frames, up to the last message boundary, and counts
    /// messages.
    fn find_message_end(&mut self) {
        let mut at = self.frame.clone();
        loop {
            let left = self.taken.bytes.wrapping_sub(at.bytes);
            if left == 0 {
                return;
            }
            // SAFETY: `left` bytes behind `at` were taken.
            let run = unsafe { at.next_run(left) };
            // SAFETY: as above.
            let header = unsafe { at.chunk.slice(at.at, run.min(frame::MAX_HEADER)) };
            // Our own frames are never malformed. A partly taken header is decoded next time.
            let Ok(Some(header)) = frame::decode_header(header) else { return };
            let total = header.header_len as u64 + header.body_len;
            if total > left {
                return;
            }
            at.at += total as usize;
            at.bytes = at.bytes.wrapping_add(total);
            if header.flags & frame::MORE == 0 {
                self.frame.set(&at);
                self.messages = self.messages.wrapping_add(1);
            }
        }
    }

    /// Called after a lost connection: goes back to the start of the partly taken message.
    pub fn rewind(&mut self) {
        self.taken.set(&self.message_end);
        self.frame.set(&self.message_end);
    }

    /// Drops all published messages, including a partly taken one.
    pub fn discard(&mut self) {
        let pending = self.pending();
        self.advance(pending);
    }

    /// Hands all messages that were not completely taken to `put`, in pieces. Returns the number of
    /// these messages, and the number of taken bytes of the first one.
    pub fn copy_unsent(mut self, mut put: impl FnMut(&[u8])) -> (u64, u64) {
        let part = self.taken.bytes.wrapping_sub(self.message_end.bytes);
        self.rewind();
        let mut left = self.pending();
        while left > 0 {
            // SAFETY: `left` bytes behind `taken` are published and seen.
            let run = unsafe { self.taken.next_run(left) };
            // SAFETY: as above.
            put(unsafe { self.taken.chunk.slice(self.taken.at, run) });
            // SAFETY: as above.
            unsafe { self.taken.skip(run as u64) };
            left -= run as u64;
        }
        (chain::messages_ahead(self.tail, self.messages), part)
    }
}
