//! A tap: the request of one tool, and the copies on their way to it. Owners offer messages; the
//! thread of the control socket takes them. An owner never waits for a tool: messages without room
//! are counted as missed.

use tautline_core::host::TappedPart;
use tautline_io::clock::unix_us;
use tautline_io::wake::WakeFd;
use tautline_observe::tap::{Direction, Frame, MANY, MessageCopy, Part, Request};
use tautline_queue::sync::atomic::AtomicU64;
use tautline_queue::sync::atomic::Ordering::Relaxed;
use tautline_queue::sync::{Arc, Mutex, lock};

/// Maximum number of bytes that are queued for a tool, and that are kept of a message.
const ROOM: usize = 4 << 20;
/// Approximate memory of a part in addition to its bytes.
const PART: usize = 64;

/// The request of one tool, and its queue.
pub(super) struct Tap {
    request: Request,
    waiting: Mutex<QueuedFrames>,
    /// Wakes the thread that takes the copies.
    wake: Arc<WakeFd>,
    /// Number of messages that the tool has missed.
    // Relaxed: number: reported with a later frame.
    missed: AtomicU64,
    /// Number of missed messages that were too large to copy.
    // Relaxed: number: reported with a later frame, like `missed`.
    too_large: AtomicU64,
    /// Number of messages that the tool would have got without `every`.
    // Relaxed: number: any of the messages may be the one that is copied.
    seen: AtomicU64,
}

#[derive(Default)]
struct QueuedFrames {
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

/// The taps of a socket, with their copies of the messages in progress.
#[derive(Default)]
pub(super) struct TapState(Vec<AttachedTap>);

/// A tap, and its copies of the messages in progress. Each tap has its own copies, because the taps
/// want different numbers of bytes.
struct AttachedTap {
    tap: Arc<Tap>,
    sent: TappedMessage,
    received: TappedMessage,
}

impl TapState {
    /// Replaces the list of taps. Taps that stay keep their copies. Returns true if there are taps.
    pub(super) fn update(&mut self, taps: Vec<Arc<Tap>>) -> bool {
        self.0.retain(|one| taps.iter().any(|tap| Arc::ptr_eq(tap, &one.tap)));
        for tap in taps {
            if !self.0.iter().any(|one| Arc::ptr_eq(&tap, &one.tap)) {
                let (sent, received) = (TappedMessage::default(), TappedMessage::default());
                self.0.push(AttachedTap { tap, sent, received });
            }
        }
        !self.0.is_empty()
    }

    /// Adds a part that is about to be sent.
    pub(super) fn add_sent(&mut self, part: &[u8]) {
        self.0.iter_mut().for_each(|one| one.sent.add(part.len(), part, one.tap.most()));
    }

    /// Completes the part, or removes it if it was not sent. Offers a whole message to the taps.
    pub(super) fn end_sent(&mut self, socket: u64, sent: Option<TappedPart>) {
        for one in &mut self.0 {
            let Some(part) = sent else {
                one.sent.undo();
                continue;
            };
            one.sent.with(part.peer);
            if part.is_last && !one.sent.is_empty() {
                one.tap.offer(socket, Direction::Out, &one.sent);
                one.sent.clear();
            }
        }
    }

    /// Adds a received part. Offers a whole message to the taps.
    pub(super) fn add_received(&mut self, socket: u64, length: usize, bytes: &[u8], part: TappedPart) {
        for one in &mut self.0 {
            one.received.add(length, bytes, one.tap.most());
            one.received.with(part.peer);
            if part.is_last {
                one.tap.offer(socket, Direction::In, &one.received);
                one.received.clear();
            }
        }
    }
}

/// A message as its owner has seen it.
#[derive(Default)]
struct TappedMessage {
    parts: Vec<Part>,
    /// Memory of the parts. Beyond [`ROOM`] later parts are not kept, and the tool misses the
    /// message.
    size: usize,
    /// Bytes of all parts.
    length: u64,
    last: Last,
    peer: Option<u64>,
}

/// The last part: its memory, its bytes, and true if it is kept.
#[derive(Default)]
struct Last {
    size: usize,
    length: u64,
    is_kept: bool,
}

impl TappedMessage {
    /// Adds the next part: its length, and its available bytes, of which at most `most` are kept.
    fn add(&mut self, length: usize, bytes: &[u8], most: u64) {
        let kept = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
        let (size, length) = (PART + kept, length as u64);
        self.size = self.size.saturating_add(size);
        self.length = self.length.saturating_add(length);
        self.last = Last { size, length, is_kept: self.size <= ROOM };
        if self.last.is_kept {
            self.parts.push(Part { length, bytes: bytes[..kept].to_vec() });
        }
    }

    /// Notes the peer that the last part went to or came from. `None` has no effect.
    fn with(&mut self, peer: Option<u64>) {
        self.peer = peer.or(self.peer);
    }

    /// Removes the last part, which was not sent.
    fn undo(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.size = self.size.saturating_sub(last.size);
        self.length = self.length.saturating_sub(last.length);
        if last.is_kept {
            self.parts.pop();
        }
    }

    /// Forgets the message, which is complete or was dropped.
    fn clear(&mut self) {
        *self = TappedMessage { parts: std::mem::take(&mut self.parts), ..TappedMessage::default() };
        self.parts.clear();
    }

    /// True if it has no part yet.
    fn is_empty(&self) -> bool {
        self.size == 0
    }
}

impl Tap {
    pub(super) fn new(request: Request, wake: Arc<WakeFd>) -> Self {
        let [missed, too_large, seen] = [0; 3].map(AtomicU64::new);
        Tap { request, waiting: Mutex::default(), wake, missed, too_large, seen }
    }

    /// The only socket of interest, if the request names one.
    pub(super) fn socket(&self) -> Option<u64> {
        self.request.socket
    }

    /// Number of bytes of a part that the tap inspects: the requested bytes, or the prefix if it is
    /// longer.
    fn most(&self) -> u64 {
        self.request.bytes.max(self.request.prefix.len() as u64)
    }

    /// Owner: offers a message that went in this direction. If the request matches and there is
    /// room, the message is copied.
    fn offer(&self, socket: u64, direction: Direction, seen: &TappedMessage) {
        let first = seen.parts.first().map_or(&[][..], |part| &part.bytes);
        let peer = seen.peer.unwrap_or(MANY);
        if !self.request.accepts(direction, peer, first, seen.length) {
            return;
        }
        if !self.seen.fetch_add(1, Relaxed).is_multiple_of(self.request.every) {
            return;
        }
        if seen.size > ROOM {
            // Before `missed`, because only that count wakes the thread.
            self.too_large.fetch_add(1, Relaxed);
            return self.miss();
        }
        let most = usize::try_from(self.request.bytes).unwrap_or(usize::MAX);
        let parts = seen.parts.iter().map(|part| {
            let kept = most.min(part.bytes.len());
            Part { length: part.length, bytes: part.bytes[..kept].to_vec() }
        });
        let copy = MessageCopy { at: unix_us(), socket, peer, direction, parts: parts.collect() };
        let frame = Frame::Copy(copy).to_bytes();
        // The lock is held for a few instructions only: no other holder makes a system call or
        // copies data under it.
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

    /// Counts a missed message. The tool gets the count with the next frames.
    fn miss(&self) {
        if self.missed.fetch_add(1, Relaxed) == 0 {
            self.wake.wake();
        }
    }

    /// Takes the frames queued for the tool, which makes room again.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let mut waiting = lock(&self.waiting);
        waiting.bytes = 0;
        let mut frames = std::mem::take(&mut waiting.frames);
        drop(waiting);
        let count = self.missed.swap(0, Relaxed);
        if count > 0 {
            let too_large = self.too_large.swap(0, Relaxed).min(count);
            frames.push(Frame::Missed { count, too_large }.to_bytes());
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

    fn seen(body: &[u8]) -> TappedMessage {
        let mut seen = TappedMessage::default();
        seen.add(body.len(), body, u64::MAX);
        seen
    }

    fn taken(tap: &Tap) -> Vec<Frame> {
        tap.take().iter().map(|frame| Frame::read(&mut &frame[..]).unwrap().unwrap()).collect()
    }

    #[test]
    fn tap_copies_one_in_n_and_truncates() {
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
        let mut endless = TappedMessage::default();
        for _ in 0..10 * ROOM / PART {
            endless.add(1, b"x", u64::MAX);
        }
        assert!(endless.parts.len() < ROOM / PART);
        tap.offer(1, Direction::In, &endless);
        assert_eq!(taken(&tap), [Frame::Missed { count: 1, too_large: 1 }]);
        // An unsent part is removed.
        let mut large = TappedMessage::default();
        large.add(2 * ROOM, &vec![0; 2 * ROOM], u64::MAX);
        large.undo();
        assert!(large.is_empty());
        large.add(1, b"y", u64::MAX);
        tap.offer(1, Direction::Out, &large);
        assert!(matches!(&taken(&tap)[..], [Frame::Copy(copy)] if copy.parts[0].bytes == b"y"));
    }

    #[test]
    fn messages_over_limit_are_counted_as_missed() {
        let tap = tap(Request::default());
        let large = seen(&vec![0; ROOM / 4]);
        for _ in 0..10 {
            tap.offer(1, Direction::Out, &large);
        }
        let frames = taken(&tap);
        assert_eq!(frames.len(), 4);
        assert_eq!(frames[3], Frame::Missed { count: 7, too_large: 0 });
        // There is room again.
        tap.offer(1, Direction::Out, &large);
        assert_eq!(taken(&tap).len(), 1);
    }
}
