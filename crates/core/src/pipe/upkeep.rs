//! Operations of a socket on its pipes, from their creation to their end, apart from its pattern.

use super::{Incoming, Link, Outgoing, Peer, Pipe, PipeId};
use crate::conn::inproc::{InprocEnd, Offer};
use crate::conn::{Connection, NewPipe, PeerInfo, SocketInbox};
use crate::message::Message;
use crate::sync::{Arc, prefetch};
use crate::timing::LULL_NS;
use std::mem::offset_of;
use tautline_io::clock;
use tautline_io::net::Stream;

impl Pipe {
    /// Creates the pipe of a connection.
    pub(crate) fn wire(new: NewPipe) -> Self {
        Pipe {
            link: Link::Wire(new.connection),
            outgoing: Outgoing::new(new.outgoing),
            incoming: Incoming::new(new.incoming),
            peer: Peer::new(new.connected_here),
        }
    }

    /// Creates the pipe of an inproc end.
    pub(crate) fn inproc(offer: Offer, send_hwm: u32) -> Self {
        let mut outgoing = Outgoing::new(offer.outgoing);
        outgoing.set_inproc_limit(&offer.end, send_hwm);
        Pipe {
            link: Link::Inproc(offer.end),
            outgoing,
            incoming: Incoming::new(offer.incoming),
            peer: Peer::new(offer.connected_here),
        }
    }

    /// Registers the pipe with the I/O side or the other inproc end. News carry its ID from now on.
    pub(crate) fn register(&mut self, id: PipeId, inbox: &Arc<SocketInbox>, receive_hwm: u32) {
        match &self.link {
            Link::Wire(connection) => {
                connection.set_token(id.0);
                connection.acknowledge_readable();
            }
            Link::Inproc(end) => {
                self.incoming.set_credit(receive_hwm);
                end.attach(inbox, id.0, receive_hwm);
            }
        }
    }

    /// Sets the peer after a handshake, which may be a later one of the same pipe.
    pub(crate) fn set_peer(&mut self, info: Box<PeerInfo>) {
        self.incoming.metadata = (!info.metadata.is_empty()).then(|| info.metadata.clone());
        self.peer.set_info(info);
        if let Link::Inproc(end) = &self.link {
            self.outgoing.set_inproc_limit(end, self.outgoing.high_water_mark.send_hwm);
        }
    }

    /// Ends the pipe, because the peer is gone. Received messages stay readable.
    pub(super) fn end(&mut self) {
        self.outgoing.end();
    }

    /// Queues a message about the peer for the receiver (see `Incoming::queue_event_message`). If
    /// there is no memory for it, counts it as dropped.
    pub(crate) fn queue_event_message(&mut self, body: &[u8]) {
        if !self.incoming.queue_event_message(body) {
            self.outgoing.count_dropped();
        }
    }

    /// Acknowledges `News::Readable`.
    pub(crate) fn rearm_readable(&self) {
        if let Link::Wire(connection) = &self.link {
            connection.acknowledge_readable();
        }
    }

    /// Makes the pipe lean, because its socket has many pipes.
    pub(super) fn set_lean(&mut self) {
        if let (Link::Wire(connection), false) = (&self.link, self.outgoing.lean) {
            connection.set_lean();
            self.outgoing.set_lean();
            self.incoming.set_lean();
        }
    }

    /// Returns the connection behind the pipe, if it is not inproc.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.link.connection()
    }

    /// Returns the inproc end behind the pipe, if it is inproc.
    pub(crate) fn inproc_end(&self) -> Option<&InprocEnd> {
        self.link.inproc_end()
    }

    /// Applies a new ZMQ_SNDHWM or ZMQ_RCVHWM.
    pub(super) fn set_limits(&mut self, send_hwm: u32, receive_hwm: u32) {
        match &self.link {
            Link::Wire(connection) => {
                connection.set_receive_limit(receive_hwm);
                self.outgoing.set_wire_limit(send_hwm);
            }
            Link::Inproc(end) => {
                end.set_receive_hwm(receive_hwm);
                self.outgoing.set_inproc_limit(end, send_hwm);
            }
        }
    }

    /// Prepares a sleep of the owner until it can send. Returns the stream to poll for room; inproc
    /// peers wake the owner instead.
    pub(crate) fn wait_for_room(&mut self) -> Option<Arc<Stream>> {
        match &self.link {
            Link::Wire(connection) => {
                // The connection counts as active for a moment, because it writes as soon as it
                // can.
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

    /// Like `recv_last`, but into a buffer, for `Routes`. Returns the length.
    #[inline(always)]
    pub(crate) fn recv_last_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let len = self.incoming.recv_last_into(buffer)?;
        self.was_received();
        Some(len)
    }

    /// Like `recv_last_into`, but into a message.
    #[inline(always)]
    pub(crate) fn recv_last_message(&mut self, message: &mut Message) -> Option<usize> {
        let len = self.incoming.recv_last_message(message)?;
        self.was_received();
        Some(len)
    }

    /// Prefetches the fields that a send touches into the cache, without reading them.
    #[inline]
    pub(super) fn prefetch(slot: &Option<Pipe>) {
        let start = std::ptr::from_ref(slot).cast::<u8>();
        // 64 bytes more, because the slot may not begin at a cache line.
        for line in (0..offset_of!(Pipe, outgoing) + Outgoing::HOT_FIELDS_END + 64).step_by(64) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// Prefetches the queue and the connection's sweep mark.
    #[inline]
    pub(super) fn prefetch_queue(&self) {
        self.outgoing.prefetch_queue();
        if let Link::Wire(connection) = &self.link {
            prefetch(&raw const connection.sweep_mark);
        }
    }
}
