//! `inproc://`, zmq_inproc(7): two sockets of one context, joined only by two queues.
//!
//! No thread runs between them: a sender publishes into the receiver's queue and wakes its owner if
//! the owner sleeps. Each side's send high-water mark is its own ZMQ_SNDHWM plus the other side's
//! ZMQ_RCVHWM.

use std::sync::{OnceLock, Weak};
use std::time::Duration;

use crate::options::Options;
use tautline_queue::message::Message;
use tautline_queue::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use tautline_queue::sync::atomic::{AtomicBool, AtomicU32, fence};
use tautline_queue::sync::{Arc, Padded, barrier_light};
use tautline_queue::{self as queue, FrameReader, FrameWriter, LatestMessage};

use super::{News, PeerInfo, SocketInbox};
use tautline_io::poll::{self, PollFd};
use tautline_proto::frame;

/// One side's half of the shared state.
#[derive(Default)]
struct SideState {
    /// The owner's inbox. Empty until the side has an owner: a socket that connects before the
    /// other binds waits for it.
    inbox: OnceLock<Arc<SocketInbox>>,
    /// The owner's name for the pipe, plus one. 0 until the pipe is attached.
    token: AtomicU32,
    /// True after this side is closed.
    closed: AtomicBool,
    /// ZMQ_RCVHWM of this side. 0 for unlimited.
    // Relaxed: behind `met`, or the lock by which the pipe was handed over.
    receive_hwm: AtomicU32,
    /// Set when this side has found the other's queue full: it waits until fewer than this many
    /// messages are in the queue. 0 if it does not wait.
    // Relaxed: fence, by `notify_room` and the heavy barrier of the side that has asked; the swap
    // decides. `wanted` is a number.
    wants_room: AtomicU32,
    /// True if this side does not need subscriptions.
    refuses_commands: AtomicBool,
    /// True if this side wakes the other side behind a full fence, and not with each message.
    rings: AtomicBool,
    /// The device that serves this side, if it is not a socket.
    device: OnceLock<Weak<dyn Device>>,
    /// The store that holds this side until its owner is found.
    offer_store: OnceLock<Weak<dyn OfferStore>>,
}

/// Storage for offers until a socket binds their name.
pub(crate) trait OfferStore: Send + Sync {
    /// Notes that a socket has given up one of its offers. Called by that socket's owner.
    fn note_dropped_offer(&self);
}

/// An object that is not a socket and has a pipe to one.
pub(crate) trait Device: Send + Sync {
    /// Called when the other side has published messages, on the thread of the other side's owner.
    /// Must not block for long.
    fn serve(&self);
}

/// State shared by both sides. With every message, a side reads the half of the other side. A side
/// rarely writes to its own half.
#[derive(Default)]
struct InprocShared {
    sides: [Padded<SideState>; 2],
    /// True after the bound side was found, so that both sides know each other.
    met: AtomicBool,
}

/// One side's handle. Dropping it notifies the other side.
pub(crate) struct InprocEnd {
    shared: Arc<InprocShared>,
    side: usize,
}

/// Wakes the other side's owner, for a thread that does not hold this side.
pub(crate) struct Doorbell {
    shared: Arc<InprocShared>,
    side: usize,
}

impl Doorbell {
    /// True if one of the sides is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.sides.iter().any(|side| side.0.closed.load(Acquire))
    }

    /// Wakes the other side's owner if it sleeps. Called after a message was published by this
    /// thread, or before a heavy barrier of this thread.
    pub(crate) fn ring(&self) {
        if let Some(inbox) = self.shared.sides[1 - self.side].0.inbox.get() {
            inbox.wake_if_parked();
        }
    }
}

/// One end of a new inproc pipe, on its way to its owner.
pub(crate) struct Offer {
    pub(crate) end: InprocEnd,
    pub(crate) outgoing: Result<FrameWriter, Arc<LatestMessage>>,
    pub(crate) incoming: Result<FrameReader, Arc<LatestMessage>>,
    /// The other side.
    pub(crate) peer: Box<PeerInfo>,
    /// True if the owner has connected, false if it has bound.
    pub(crate) connected_here: bool,
    /// The part that the owner still gets if the other side is closed before the owner takes this
    /// end.
    pub(crate) keep: Keep,
}

/// The part of an end that the owner still gets after the other side was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The complete messages that the other side has sent.
    Messages,
    /// The peer's arrival, even without a message, because the owner wants to be notified of each
    /// peer.
    Peer,
    /// No part. The messages are requests, and only the closed side could use the replies.
    Nothing,
}

/// Returns the two ends of a new pipe: first the end for the connecting socket, then the end for
/// the bound socket. `peers` describes the other side to each of them.
pub(crate) fn pair(connecting: &Options, peers: [Box<PeerInfo>; 2]) -> (Offer, Offer) {
    let shared = Arc::new(InprocShared::default());
    let ends = [0, 1].map(|side| InprocEnd { shared: shared.clone(), side });
    let way = |conflates: bool| {
        if conflates {
            let slot = Arc::new(LatestMessage::new());
            (Err(slot.clone()), Err(slot))
        } else {
            let (writer, reader) = queue::inproc();
            (Ok(writer), Ok(reader))
        }
    };
    let (out_0, in_1) = way(connecting.conflates_outgoing());
    let (out_1, in_0) = way(connecting.conflates_incoming());
    let ([end_0, end_1], [peer_0, peer_1]) = (ends, peers);
    (
        Offer {
            end: end_0,
            outgoing: out_0,
            incoming: in_0,
            peer: peer_0,
            connected_here: true,
            keep: Keep::Messages,
        },
        Offer {
            end: end_1,
            outgoing: out_1,
            incoming: in_1,
            peer: peer_1,
            connected_here: false,
            keep: Keep::Messages,
        },
    )
}

impl Offer {
    /// True if the offer is useless: the other side is closed and left no message. Subscriptions of
    /// the other side are dropped.
    pub(crate) fn is_obsolete(&mut self) -> bool {
        match &mut self.incoming {
            _ if !self.end.is_closed() || self.keep == Keep::Peer => false,
            _ if self.keep == Keep::Nothing => true,
            Ok(reader) => loop {
                match reader.head() {
                    None => return true,
                    Some(head) if head.flags & frame::COMMAND == 0 => return false,
                    Some(_) => drop(reader.skip()),
                }
            },
            Err(slot) => !slot.is_full(),
        }
    }

    /// Sends a message (ZMQ_HELLO_MSG) on behalf of this end's side, before its owner knows of the
    /// pipe.
    pub(crate) fn greet(&mut self, hello: &[u8]) {
        if hello.is_empty() {
            return;
        }
        match &mut self.outgoing {
            Ok(writer) => {
                if writer.append(0, hello).is_ok() {
                    writer.publish();
                }
            }
            Err(slot) => {
                if let Some(hello) = Message::try_from_slice(hello) {
                    slot.put(0, hello);
                }
            }
        }
        self.end.notify();
    }
}

impl InprocEnd {
    fn mine(&self) -> &SideState {
        &self.shared.sides[self.side].0
    }

    #[inline(always)]
    fn theirs(&self) -> &SideState {
        // Avoids the bounds check.
        &self.shared.sides[!self.side & 1].0
    }

    /// Attaches this end to its owner, under this name.
    pub(crate) fn attach(&self, inbox: &Arc<SocketInbox>, token: u32, receive_hwm: u32) {
        let mine = self.mine();
        let _ = mine.inbox.set(inbox.clone());
        mine.receive_hwm.store(receive_hwm, Relaxed);
        mine.token.store(token + 1, Release);
        // Store the token, then check whether the other side is closed. `drop` does the two steps
        // in the opposite order.
        fence(SeqCst);
    }

    /// Before the owner takes this end: sets the inbox that holds it.
    pub(crate) fn set_inbox(&self, inbox: &Arc<SocketInbox>) {
        let _ = self.mine().inbox.set(inbox.clone());
    }

    /// Before an owner is found: sets the store that holds this end.
    pub(crate) fn set_offer_store(&self, shelf: Weak<dyn OfferStore>) {
        let _ = self.mine().offer_store.set(shelf);
    }

    /// Before the owner takes this end: sets its receive high-water mark.
    pub(crate) fn set_receive_hwm(&self, receive_hwm: u32) {
        self.mine().receive_hwm.store(receive_hwm, Relaxed);
    }

    /// Notes that this side does not need subscriptions.
    pub(crate) fn refuse_commands(&self) {
        self.mine().refuses_commands.store(true, Release);
    }

    /// True if the other side does not need subscriptions.
    pub(crate) fn refuses_commands(&self) -> bool {
        self.theirs().refuses_commands.load(Acquire)
    }

    /// Notes that the bound side was found. From now on, that side's ZMQ_RCVHWM is part of the
    /// limit.
    pub(crate) fn mark_bound(&self) {
        self.shared.met.store(true, Release);
    }

    /// Returns the maximum number of messages in the queue to the other side, given this side's
    /// ZMQ_SNDHWM. 0 for unlimited.
    pub(crate) fn send_limit(&self, send_hwm: u32) -> u32 {
        // Acquire pairs with the Release in `mark_bound`, before which the other side set its mark.
        // So load `met` first.
        let met = self.shared.met.load(Acquire);
        let theirs = self.theirs().receive_hwm.load(Relaxed);
        match (met, send_hwm, theirs) {
            (_, 0, _) | (true, _, 0) => 0,
            (true, mine, theirs) => mine.saturating_add(theirs),
            (false, mine, _) => mine,
        }
    }

    /// True if the other side is a device of the I/O thread and not a socket.
    pub(crate) fn is_device(&self) -> bool {
        self.theirs().device.get().is_some()
    }

    /// Registers `device` as the owner of this side, in place of a socket.
    pub(crate) fn serve(&self, device: Weak<dyn Device>) {
        let _ = self.mine().device.set(device);
    }

    /// True if the other side is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.theirs().closed.load(Acquire)
    }

    /// Returns a handle that wakes the other side's owner from any thread.
    pub(crate) fn doorbell(&self) -> Doorbell {
        Doorbell { shared: self.shared.clone(), side: self.side }
    }

    /// Wakes the other side's owner if it sleeps. Called after a message was published. Costs one
    /// load if the owner is awake.
    #[inline]
    pub(crate) fn notify(&self) {
        if let Some(inbox) = self.theirs().inbox.get()
            && inbox.parked_hint()
        {
            self.wake_other(inbox);
        }
    }

    #[cold]
    fn wake_other(&self, inbox: &SocketInbox) {
        match self.theirs().device.get().and_then(Weak::upgrade) {
            Some(device) => device.serve(),
            None => inbox.wake_if_parked(),
        }
    }

    /// Owner: from the next message on, `ring` wakes the other side instead of `notify`.
    pub(crate) fn use_ring(&self) {
        // Release: a thread that sees this flag sees all messages that were published with
        // `notify`.
        self.mine().rings.store(true, Release);
    }

    /// Wakes the other side's owner if it sleeps. Called for messages published after `use_ring`.
    pub(crate) fn ring(&self) {
        // Store (the queue's tail), then load: pairs with the fence of an owner that has found
        // `rings`.
        fence(SeqCst);
        self.notify();
    }

    /// True if the other side wakes this one only behind a full fence. A sleep then needs no heavy
    /// barrier.
    pub(crate) fn peer_uses_ring(&self) -> bool {
        self.theirs().rings.load(Acquire)
    }

    /// Sends news to the other side.
    pub(crate) fn send_news(&self, news: impl FnOnce(u32) -> News) {
        let theirs = self.theirs();
        if let (Some(inbox), Some(token)) = (theirs.inbox.get(), theirs.token.load(Acquire).checked_sub(1)) {
            inbox.push(news(token));
        }
    }

    /// Asks the other side to wake this side's owner when it has read half of its full queue of
    /// `limit` messages. The caller must look at the queue once more afterwards, behind the heavy
    /// barrier of `Inbox::prepare_park`.
    pub(crate) fn request_room(&self, limit: u32) {
        self.mine().wants_room.store(limit / 2 + 1, Release);
    }

    /// Sleeps until the other side has read half of the `queued` messages, for at most `patience`.
    /// Returns at once if `is_over` returns true or there are news. News also end the sleep.
    pub(crate) fn sleep_until_room(&self, queued: u32, patience: Duration, is_over: impl FnOnce() -> bool) {
        let Some(inbox) = self.mine().inbox.get().filter(|inbox| !inbox.is_exposed()) else { return };
        let Ok(number) = inbox.waker().number() else { return };
        self.request_room(queued);
        // The other side may sleep, too, if it is not woken with each message.
        self.ring();
        if inbox.prepare_park() {
            if !is_over() {
                // An error only ends the sleep early.
                let _ = poll::poll(&mut [PollFd::new(number, PollFd::IN)], Some(patience));
            }
            inbox.finish_park();
            inbox.waker().clear();
        }
    }

    /// Returns the number of messages that may remain in the queue that this side reads, if the
    /// other side waits for room in it.
    #[inline(always)]
    pub(crate) fn requested_room(&self) -> Option<u32> {
        self.theirs().wants_room.load(Relaxed).checked_sub(1)
    }

    /// Wakes the other side if it waits. Called after this side has given credit.
    pub(crate) fn notify_room(&self) {
        // Store (the queue's head), then load: pairs with the heavy barrier of the other side.
        barrier_light();
        let wants_room = &self.theirs().wants_room;
        // Load first: this runs with each look at an empty queue, and a swap would take the cache
        // line from the other side.
        if wants_room.load(Relaxed) != 0
            && wants_room.swap(0, AcqRel) != 0
            && let Some(inbox) = self.theirs().inbox.get()
        {
            inbox.wake_if_parked();
        }
    }
}

impl Drop for InprocEnd {
    fn drop(&mut self) {
        self.mine().closed.store(true, Release);
        fence(SeqCst);
        let theirs = self.theirs();
        if theirs.closed.load(Acquire) {
            return;
        }
        if theirs.token.load(Acquire) != 0 {
            return self.send_news(News::PeerClosed);
        }
        // The owner has not taken the other side, which may now be useless.
        match (theirs.inbox.get(), theirs.offer_store.get().and_then(Weak::upgrade)) {
            (Some(inbox), _) => inbox.discard(1, News::is_obsolete),
            (None, Some(shelf)) => shelf.note_dropped_offer(),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::Waker;
    use crate::options::ContextDefaults;
    use tautline_proto::SocketType;
    use tautline_testkit::with_watchdog;

    const LIMIT: Duration = Duration::from_secs(60);
    const FOR_EVER: Duration = Duration::from_secs(3600);

    fn queued_pair(messages: u32) -> (Offer, Offer) {
        let (mut near, far) = pair(
            &Options::new(SocketType::Push, &ContextDefaults::default()),
            [Box::default(), Box::default()],
        );
        near.end.set_inbox(&Arc::new(SocketInbox::new(Waker::new())));
        if let Ok(writer) = &mut near.outgoing {
            for _ in 0..messages {
                writer.append(0, b"body").unwrap();
                writer.publish();
            }
        }
        (near, far)
    }

    #[test]
    fn sleep_ends_when_the_other_side_has_read_half() {
        with_watchdog(LIMIT, "sleep until the other side reads", || {
            let (near, mut far) = queued_pair(4);
            let reader = std::thread::spawn(move || {
                let Ok(reader) = &mut far.incoming else { unreachable!() };
                let most = loop {
                    match far.end.requested_room() {
                        Some(most) => break most,
                        None => std::thread::yield_now(),
                    }
                };
                while reader.queued() > u64::from(most) {
                    reader.skip();
                }
                reader.credit();
                far.end.notify_room();
                far
            });
            let Ok(writer) = &near.outgoing else { unreachable!() };
            near.end.sleep_until_room(4, FOR_EVER, || writer.in_flight() <= 2);
            assert_eq!(writer.in_flight(), 2);
            reader.join().unwrap();
        });
    }

    #[test]
    fn news_end_the_sleep() {
        with_watchdog(LIMIT, "sleep until news", || {
            let (near, _far) = queued_pair(4);
            near.end.mine().inbox.get().unwrap().push(News::LockRequested);
            near.end.sleep_until_room(4, FOR_EVER, || false);
        });
    }
}
