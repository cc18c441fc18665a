//! Operations on a pipe that belong to the socket and not to its pattern, from creation to end.

use super::flush::DeferredWork;
use super::pace::Pacer;
use super::room::HighWaterMark;
use super::{Incoming, Link, Outgoing, Peer, Pipe, PipeId, Store};
use crate::conn::inproc::{InprocEnd, Offer};
use crate::conn::{Connection, NewPipe, PeerInfo, SocketInbox};
use std::mem::offset_of;
use tautline_io::clock;
use tautline_io::net::Stream;
use tautline_queue::message::Message;
use tautline_queue::sync::{Arc, lock, prefetch};
use tautline_queue::{FrameReader, FrameWriter, LatestMessage};
use tautline_timing::LULL_NS;
use tautline_timing::flush::FlushRule;

impl Pipe {
    /// Makes the pipe of a new connection.
    pub(crate) fn wire(new: NewPipe) -> Self {
        Pipe::new(Link::Wire(new.connection), new.outgoing, new.incoming, new.connected_here)
    }

    /// Makes the pipe of an inproc end.
    pub(crate) fn inproc(offer: Offer, send_hwm: u32) -> Self {
        let link = Link::Inproc(offer.end);
        let mut pipe = Pipe::new(link, offer.outgoing, offer.incoming, offer.connected_here);
        pipe.outgoing.set_inproc_limit(send_hwm);
        pipe
    }

    fn new(
        link: Link,
        outgoing: Result<FrameWriter, Arc<LatestMessage>>,
        incoming: Result<FrameReader, Arc<LatestMessage>>,
        connected_here: bool,
    ) -> Self {
        let outgoing = Outgoing {
            link,
            store: outgoing.into(),
            ended: false,
            in_message: false,
            received_since_send: false,
            quiet: false,
            lean: false,
            deferred: DeferredWork::default(),
            flush: FlushRule::default(),
            follows: None,
            high_water_mark: HighWaterMark::default(),
            pacer: Pacer::default(),
            conflated: None,
        };
        let incoming = Incoming { store: incoming.into(), metadata: None, unqueued: None, lean: false };
        let peer = Peer { info: None, routing_id: Vec::new(), connected_here, reconnects: 0 };
        Pipe { outgoing, incoming, peer }
    }

    /// Tells the link the id of this pipe. News from the I/O side or from the other inproc end
    /// carry the id from now on.
    pub(crate) fn register(&mut self, id: PipeId, inbox: &Arc<SocketInbox>, receive_hwm: u32) {
        match &self.outgoing.link {
            Link::Wire(connection) => {
                connection.set_token(id.0);
                connection.acknowledge_readable();
            }
            Link::Inproc(end) => {
                // The peer's limit is at least ours. With half of our limit, the peer never waits
                // for credit that is due.
                if let Store::Queue(reader) = &mut self.incoming.store {
                    reader.set_credit_every(receive_hwm);
                }
                end.attach(inbox, id.0, receive_hwm);
            }
        }
    }

    /// Stores the peer's information after a handshake. Called again after each reconnect.
    pub(crate) fn set_peer(&mut self, info: Box<PeerInfo>) {
        self.incoming.metadata = (!info.metadata.is_empty()).then(|| info.metadata.clone());
        self.peer.info = Some(info);
        self.outgoing.set_inproc_limit(self.outgoing.high_water_mark.send_hwm);
    }

    /// Adds a message about the peer, which is received after all messages that the peer has sent.
    /// If there is no memory for it, counts it as dropped.
    pub(crate) fn queue_event_message(&mut self, body: &[u8]) {
        let Some(mut message) = Message::try_from_slice(body) else { return self.outgoing.count_dropped() };
        message.set_metadata(self.incoming.metadata.clone());
        self.incoming.unqueued.get_or_insert_default().event_messages.push_back(message);
    }

    /// Marks the pipe as one of many: its queues hold no memory while they are empty.
    pub(super) fn set_lean(&mut self) {
        if let (Link::Wire(connection), false) = (&self.outgoing.link, self.outgoing.lean) {
            lock(&connection.intake).set_lean();
            self.outgoing.lean = true;
            self.incoming.lean = true;
            if let Store::Queue(writer) = &mut self.outgoing.store {
                writer.set_lean();
            }
        }
    }

    /// Returns the connection behind the pipe, or `None` for inproc.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        match &self.outgoing.link {
            Link::Wire(connection) => Some(connection),
            Link::Inproc(_) => None,
        }
    }

    /// Returns the inproc end behind the pipe, or `None` for a connection.
    pub(crate) fn inproc_end(&self) -> Option<&InprocEnd> {
        match &self.outgoing.link {
            Link::Wire(_) => None,
            Link::Inproc(end) => Some(end),
        }
    }

    /// Applies changed values of ZMQ_SNDHWM and ZMQ_RCVHWM.
    pub(super) fn set_limits(&mut self, send_hwm: u32, receive_hwm: u32) {
        match &self.outgoing.link {
            Link::Wire(connection) => {
                lock(&connection.intake).set_limit(receive_hwm);
                if let Store::Queue(writer) = &mut self.outgoing.store {
                    writer.set_limit_in_steps(send_hwm);
                }
            }
            Link::Inproc(end) => {
                end.set_receive_hwm(receive_hwm);
                self.outgoing.set_inproc_limit(send_hwm);
            }
        }
    }

    /// Called before the owner sleeps until it can send. Returns the stream to poll for room. An
    /// inproc peer is asked to wake the owner instead.
    pub(crate) fn wait_for_room(&mut self) -> Option<Arc<Stream>> {
        match &self.outgoing.link {
            Link::Wire(connection) => {
                // Count the owner as at work for this time, because it writes as soon as the kernel
                // has room.
                connection.note_work(clock::ticks() + clock::nanos_to_ticks(LULL_NS));
                connection.writable_stream()
            }
            Link::Inproc(end) => {
                if let Some(limit) = self.outgoing.queue_limit() {
                    end.request_room(limit);
                }
                None
            }
        }
    }

    /// Prefetches the fields of a pipe that sending touches. Does not access the slot.
    #[inline]
    pub(super) fn prefetch(slot: &Option<Pipe>) {
        let start = std::ptr::from_ref(slot).cast::<u8>();
        // One cache line more, because the slot may begin in the middle of a line.
        for line in (0..offset_of!(Pipe, outgoing) + Outgoing::HOT_FIELDS_END + 64).step_by(64) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// Prefetches the memory behind the pipe that sending touches: its queue and its connection.
    #[inline]
    pub(super) fn prefetch_queue(&self) {
        if let Store::Queue(writer) = &self.outgoing.store {
            writer.prefetch();
        }
        if let Link::Wire(connection) = &self.outgoing.link {
            prefetch(&raw const connection.sweep_mark);
        }
    }
}
