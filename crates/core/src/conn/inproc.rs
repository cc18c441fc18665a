//! `inproc://`, zmq_inproc(7): two sockets of one context, joined by two queues and nothing else.
//!
//! There is no thread between them: a sender publishes into the receiver's queue and wakes its
//! owner if that sleeps. Each side's high-water mark for sending is the sum of its own ZMQ_SNDHWM
//! and the other's ZMQ_RCVHWM.

use std::sync::{OnceLock, Weak};

use crate::message::Message;
use crate::options::Options;
use crate::queue::{self, FrameReader, FrameWriter, Slot};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU32, fence};
use crate::sync::{Arc, Padded, barrier_light};

use super::{News, PeerInfo, SocketInbox};
use tautline_proto::frame;

/// One side's half of what both see.
#[derive(Default)]
struct Side {
    /// Its owner's inbox, once it has one (a socket that connects before the other binds waits for
    /// it).
    inbox: OnceLock<Arc<SocketInbox>>,
    /// Its owner's name for the pipe, plus one; 0 until it is attached.
    token: AtomicU32,
    /// It is gone.
    closed: AtomicBool,
    /// Its ZMQ_RCVHWM; 0 for none.
    // Relaxed: behind `met`, or the lock by which the pipe was handed over.
    receive_hwm: AtomicU32,
    /// It has found the other's queue full and waits until fewer than this many messages are in it;
    /// 0: it does not wait.
    // Relaxed: fence, by `give_room` and the heavy barrier of the end that has asked; the swap
    // decides. `wanted` is a number.
    wants_room: AtomicU32,
    /// It has no use for subscriptions.
    refuses_commands: AtomicBool,
    /// It wakes the other side behind a full fence, and not with each message.
    rings: AtomicBool,
    /// What serves this side, if it is not a socket.
    device: OnceLock<Weak<dyn Device>>,
    /// Where this side lies until its owner is found.
    shelf: OnceLock<Weak<dyn Shelf>>,
}

/// Where offers lie until a socket binds their name.
pub(crate) trait Shelf: Send + Sync {
    /// The socket that made one of them has given it up. Called by that socket's owner.
    fn given_up(&self);
}

/// Something that is no socket and has a pipe to one.
pub(crate) trait Device: Send + Sync {
    /// The other side has published something. Called on its owner's thread; must not block for
    /// long.
    fn serve(&self);
}

/// What both sides see. Each looks at the other's half with every message and writes to its own
/// only rarely.
#[derive(Default)]
struct Shared {
    sides: [Padded<Side>; 2],
    /// Both sides are there.
    met: AtomicBool,
}

/// One side's handle. Dropping it tells the other side.
pub(crate) struct InprocEnd {
    shared: Arc<Shared>,
    side: usize,
}

/// Wakes the other side's owner, for a thread that does not hold this side.
pub(crate) struct Doorbell {
    shared: Arc<Shared>,
    side: usize,
}

impl Doorbell {
    /// Whether either side is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.shared.sides.iter().any(|side| side.0.closed.load(Acquire))
    }

    /// Something was published, by this thread or before a heavy barrier of it: wakes the other
    /// side's owner if that sleeps.
    pub(crate) fn ring(&self) {
        if let Some(inbox) = self.shared.sides[1 - self.side].0.inbox.get() {
            inbox.nudge();
        }
    }
}

/// One end of a new inproc pipe, on its way to its owner.
pub(crate) struct Offer {
    pub(crate) end: InprocEnd,
    pub(crate) outgoing: Result<FrameWriter, Arc<Slot>>,
    pub(crate) incoming: Result<FrameReader, Arc<Slot>>,
    /// The other side.
    pub(crate) peer: Box<PeerInfo>,
    /// The owner has connected, and not bound.
    pub(crate) connected_here: bool,
    /// What is worth keeping of it if the other side goes before the owner takes it.
    pub(crate) keep: Keep,
}

/// What is kept of an end whose other side is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Its whole messages.
    Messages,
    /// That the peer was there, also without a message: the owner wants to be told of each.
    Peer,
    /// Nothing: only the other side had a use for what would come of its messages.
    Nothing,
}

/// The two ends of a new pipe: for the socket that connects and for the one that is bound. `peers`
/// are what each of them is told about the other.
pub(crate) fn pair(connecting: &Options, peers: [Box<PeerInfo>; 2]) -> (Offer, Offer) {
    let shared = Arc::new(Shared::default());
    let ends = [0, 1].map(|side| InprocEnd { shared: shared.clone(), side });
    let way = |conflates: bool| {
        if conflates {
            let slot = Arc::new(Slot::new());
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
    /// Whether nothing would come of it: the other side is gone and has left no message. What it
    /// had subscribed to is dropped.
    pub(crate) fn is_void(&mut self) -> bool {
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

    /// The side that this end is for sends a message before its owner knows of the pipe
    /// (ZMQ_HELLO_MSG).
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
    fn mine(&self) -> &Side {
        &self.shared.sides[self.side].0
    }

    #[inline(always)]
    fn theirs(&self) -> &Side {
        // Without a check of the bounds.
        &self.shared.sides[!self.side & 1].0
    }

    /// The owner takes this end, under this name.
    pub(crate) fn attach(&self, inbox: &Arc<SocketInbox>, token: u32, receive_hwm: u32) {
        let mine = self.mine();
        let _ = mine.inbox.set(inbox.clone());
        mine.receive_hwm.store(receive_hwm, Relaxed);
        mine.token.store(token + 1, Release);
        // Store the token, then look whether the other side is gone: the other way round in `drop`.
        fence(SeqCst);
    }

    /// Before the owner takes it: in whose inbox it lies.
    pub(crate) fn lies_in(&self, inbox: &Arc<SocketInbox>) {
        let _ = self.mine().inbox.set(inbox.clone());
    }

    /// Before an owner is found: where it lies.
    pub(crate) fn lies_on(&self, shelf: Weak<dyn Shelf>) {
        let _ = self.mine().shelf.set(shelf);
    }

    /// Before the owner takes it: what it will receive at most.
    pub(crate) fn set_receive_hwm(&self, receive_hwm: u32) {
        self.mine().receive_hwm.store(receive_hwm, Relaxed);
    }

    /// This side has no use for subscriptions.
    pub(crate) fn refuse_commands(&self) {
        self.mine().refuses_commands.store(true, Release);
    }

    /// Whether the other side has no use for subscriptions.
    pub(crate) fn refuses_commands(&self) -> bool {
        self.theirs().refuses_commands.load(Acquire)
    }

    /// The bound side was found: from now on its high-water mark counts.
    pub(crate) fn meet(&self) {
        self.shared.met.store(true, Release);
    }

    /// The most messages that may lie in the other's queue, given this side's ZMQ_SNDHWM.
    pub(crate) fn send_limit(&self, send_hwm: u32) -> u32 {
        // Acquire pairs with the Release in `meet`, before which the other's mark was set: so this
        // one is loaded first.
        let met = self.shared.met.load(Acquire);
        let theirs = self.theirs().receive_hwm.load(Relaxed);
        match (met, send_hwm, theirs) {
            (_, 0, _) | (true, _, 0) => 0,
            (true, mine, theirs) => mine.saturating_add(theirs),
            (false, mine, _) => mine,
        }
    }

    /// Whether the other side is no socket but works for the I/O thread.
    pub(crate) fn is_device(&self) -> bool {
        self.theirs().device.get().is_some()
    }

    /// Makes this side that of a device.
    pub(crate) fn serve(&self, device: Weak<dyn Device>) {
        let _ = self.mine().device.set(device);
    }

    /// Whether the other side is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.theirs().closed.load(Acquire)
    }

    /// Wakes the other side's owner, from wherever.
    pub(crate) fn doorbell(&self) -> Doorbell {
        Doorbell { shared: self.shared.clone(), side: self.side }
    }

    /// Something was published for the other side: wakes its owner if that sleeps. One load if not.
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
            None => inbox.nudge(),
        }
    }

    /// Owner: from the next message on it is not `notify` that wakes the other side, but `ring`.
    pub(crate) fn use_ring(&self) {
        // Release: a thread that sees this sees all that was published with `notify`.
        self.mine().rings.store(true, Release);
    }

    /// Something was published since `use_ring`: wakes the other side's owner if that sleeps.
    pub(crate) fn ring(&self) {
        // Store (the queue's tail), then load: pairs with the fence of an owner that has found
        // `rings`.
        fence(SeqCst);
        self.notify();
    }

    /// Whether the other side never wakes this one but behind a full fence: then a sleep need not
    /// be paid for by a heavy barrier.
    pub(crate) fn is_rung(&self) -> bool {
        self.theirs().rings.load(Acquire)
    }

    /// Tells the other side something.
    pub(crate) fn tell(&self, news: impl FnOnce(u32) -> News) {
        let theirs = self.theirs();
        if let (Some(inbox), Some(token)) = (theirs.inbox.get(), theirs.token.load(Acquire).checked_sub(1)) {
            inbox.push(news(token));
        }
    }

    /// The other's queue is full, at `limit` messages: have it wake us when half of them are read.
    /// Look at the queue once more afterwards, behind the heavy barrier of `Inbox::prepare_park`.
    pub(crate) fn want_room(&self, limit: u32) {
        self.mine().wants_room.store(limit / 2 + 1, Release);
    }

    /// If the other side waits for room in the queue that this side reads: the most messages that
    /// may still be in it.
    #[inline(always)]
    pub(crate) fn wanted(&self) -> Option<u32> {
        self.theirs().wants_room.load(Relaxed).checked_sub(1)
    }

    /// This side has given credit: wakes the other if it waits.
    pub(crate) fn give_room(&self) {
        // Store (the queue's head), then load: pairs with the heavy barrier of the other side.
        barrier_light();
        let wants_room = &self.theirs().wants_room;
        // Looked at first: this is asked with every look at an empty queue, and a swap would take
        // the line from the other side.
        if wants_room.load(Relaxed) != 0
            && wants_room.swap(0, AcqRel) != 0
            && let Some(inbox) = self.theirs().inbox.get()
        {
            inbox.nudge();
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
            return self.tell(News::Left);
        }
        // The other side was not taken, and may never be of use now.
        match (theirs.inbox.get(), theirs.shelf.get().and_then(Weak::upgrade)) {
            (Some(inbox), _) => inbox.discard(1, News::is_void),
            (None, Some(shelf)) => shelf.given_up(),
            (None, None) => {}
        }
    }
}
