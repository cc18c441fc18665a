//! A tap: what one tool has asked for, and the copies on their way to it. Owners offer messages;
//! the thread of the control socket takes them. An owner waits for no tool: what has no room is
//! counted as missed.

use crate::pipe::PipeId;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, Mutex, lock};
use tautline_io::clock::unix_us;
use tautline_io::wake::WakeFd;
use tautline_observe::tap::{Copied, Direction, Frame, MANY, Part, Request};

/// Most bytes that wait for a tool, and that are kept of a message.
const ROOM: usize = 4 << 20;
/// What a part takes beside its bytes, about.
const PART: usize = 64;

/// What one tool has asked for.
pub(crate) struct Tap {
    request: Request,
    waiting: Mutex<Waiting>,
    /// Wakes the thread that takes the copies.
    wake: Arc<WakeFd>,
    /// Messages that the tool has missed.
    // Relaxed: number: told with a later frame.
    missed: AtomicU64,
    /// Messages that it would have got without `every`.
    // Relaxed: number: any of them may be the one that is copied.
    seen: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

/// A message as its owner has seen it.
#[derive(Default)]
pub(crate) struct Seen {
    parts: Vec<Part>,
    /// What they take. Beyond [`ROOM`] no more parts are kept, and the tool misses the message.
    size: usize,
    /// Bytes of all parts.
    length: u64,
    last: Last,
    peer: Option<PipeId>,
}

/// The last part: what it takes, its bytes, and whether it is kept.
#[derive(Default)]
struct Last {
    size: usize,
    length: u64,
    is_kept: bool,
}

impl Seen {
    /// The next part: its length, and as much of it as is there, of which `most` bytes are kept.
    pub(crate) fn add(&mut self, length: usize, bytes: &[u8], most: u64) {
        let kept = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
        let (size, length) = (PART + kept, length as u64);
        self.size = self.size.saturating_add(size);
        self.length = self.length.saturating_add(length);
        self.last = Last { size, length, is_kept: self.size <= ROOM };
        if self.last.is_kept {
            self.parts.push(Part { length, bytes: bytes[..kept].to_vec() });
        }
    }

    /// The last part went to this peer, or came from it. `None` says nothing.
    pub(crate) fn with(&mut self, peer: Option<PipeId>) {
        self.peer = peer.or(self.peer);
    }

    /// The last part was not sent after all.
    pub(crate) fn undo(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.size = self.size.saturating_sub(last.size);
        self.length = self.length.saturating_sub(last.length);
        if last.is_kept {
            self.parts.pop();
        }
    }

    /// The message is whole, or was given up.
    pub(crate) fn clear(&mut self) {
        *self = Seen { parts: std::mem::take(&mut self.parts), ..Seen::default() };
        self.parts.clear();
    }

    /// Whether it has no part yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl Tap {
    pub(super) fn new(request: Request, wake: Arc<WakeFd>) -> Self {
        Tap { request, waiting: Mutex::default(), wake, missed: AtomicU64::new(0), seen: AtomicU64::new(0) }
    }

    /// The only socket that it is about, if it names one.
    pub(super) fn socket(&self) -> Option<u64> {
        self.request.socket
    }

    /// How many bytes of a part it looks at: those that are asked for, and the prefix.
    pub(crate) fn most(&self) -> u64 {
        self.request.bytes.max(self.request.prefix.len() as u64)
    }

    /// Owner: this message went this way. It is copied if it is wanted and there is room.
    pub(crate) fn offer(&self, socket: u64, direction: Direction, seen: &Seen) {
        let first = seen.parts.first().map_or(&[][..], |part| &part.bytes);
        let peer = seen.peer.map_or(MANY, |peer| peer.0.into());
        if !self.request.wants(direction, peer, first, seen.length) {
            return;
        }
        if !self.seen.fetch_add(1, Relaxed).is_multiple_of(self.request.every) {
            return;
        }
        if seen.size > ROOM {
            return self.miss();
        }
        let most = usize::try_from(self.request.bytes).unwrap_or(usize::MAX);
        let parts = seen.parts.iter().map(|part| {
            let kept = most.min(part.bytes.len());
            Part { length: part.length, bytes: part.bytes[..kept].to_vec() }
        });
        let copy = Copied { at: unix_us(), socket, peer, direction, parts: parts.collect() };
        let frame = Frame::Copy(copy).to_bytes();
        // Held for a few instructions only: no other holder calls the system or copies anything.
        let mut waiting = lock(&self.waiting);
        if waiting.bytes + frame.len() > ROOM {
            drop(waiting);
            return self.miss();
        }
        waiting.bytes += frame.len();
        waiting.frames.push(frame);
        let first = waiting.frames.len() == 1;
        drop(waiting);
        if first {
            self.wake.wake();
        }
    }

    /// The tool misses a message, and is told how many with the next frames.
    fn miss(&self) {
        if self.missed.fetch_add(1, Relaxed) == 0 {
            self.wake.wake();
        }
    }

    /// What waits for the tool, after which there is room again.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let mut waiting = lock(&self.waiting);
        waiting.bytes = 0;
        let mut frames = std::mem::take(&mut waiting.frames);
        drop(waiting);
        let missed = self.missed.swap(0, Relaxed);
        if missed > 0 {
            frames.push(Frame::Missed(missed).to_bytes());
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tap(request: Request) -> Tap {
        Tap::new(request, Arc::new(WakeFd::new().unwrap()))
    }

    fn seen(body: &[u8]) -> Seen {
        let mut seen = Seen::default();
        seen.add(body.len(), body, u64::MAX);
        seen
    }

    fn taken(tap: &Tap) -> Vec<Frame> {
        tap.take().iter().map(|frame| Frame::read(&mut &frame[..]).unwrap().unwrap()).collect()
    }

    #[test]
    fn one_in_some_is_copied_and_the_first_bytes_of_it() {
        let tap = tap(Request { every: 3, bytes: 2, ..Request::default() });
        for _ in 0..7 {
            tap.offer(5, Direction::In, &seen(b"12345"));
        }
        let frames = taken(&tap);
        assert_eq!(frames.len(), 3);
        let Frame::Copy(copy) = &frames[0] else { panic!("no copy") };
        assert_eq!((copy.socket, copy.parts[0].length, &copy.parts[0].bytes[..]), (5, 5, &b"12"[..]));
    }

    #[test]
    fn a_message_without_end_takes_no_more_than_others() {
        let tap = tap(Request::default());
        let mut endless = Seen::default();
        for _ in 0..10 * ROOM / PART {
            endless.add(1, b"x", u64::MAX);
        }
        assert!(endless.parts.len() < ROOM / PART);
        tap.offer(1, Direction::In, &endless);
        assert_eq!(taken(&tap), [Frame::Missed(1)]);
        // One that did not leave is forgotten.
        let mut large = Seen::default();
        large.add(2 * ROOM, &vec![0; 2 * ROOM], u64::MAX);
        large.undo();
        assert!(large.is_empty());
        large.add(1, b"y", u64::MAX);
        tap.offer(1, Direction::Out, &large);
        assert!(matches!(&taken(&tap)[..], [Frame::Copy(copy)] if copy.parts[0].bytes == b"y"));
    }

    #[test]
    fn what_has_no_room_is_missed_and_told() {
        let tap = tap(Request::default());
        let large = seen(&vec![0; ROOM / 4]);
        for _ in 0..10 {
            tap.offer(1, Direction::Out, &large);
        }
        let frames = taken(&tap);
        assert_eq!(frames.len(), 4);
        assert_eq!(frames[3], Frame::Missed(7));
        // There is room again.
        tap.offer(1, Direction::Out, &large);
        assert_eq!(taken(&tap).len(), 1);
    }
}
