//! What a socket does with its pipes, which its pattern does not: from their making to their end.

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
    /// The pipe of a connection.
    pub(crate) fn wire(new: NewPipe) -> Self {
        Pipe {
            link: Link::Wire(new.connection),
            outgoing: Outgoing::new(new.outgoing),
            incoming: Incoming::new(new.incoming),
            peer: Peer::new(new.connected_here),
        }
    }

    /// The pipe of an inproc end.
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

    /// Names the pipe towards the I/O side or the other inproc end: news carry the name from now
    /// on.
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

    /// The handshake is done, again maybe.
    pub(crate) fn set_peer(&mut self, info: Box<PeerInfo>) {
        self.incoming.metadata = (!info.metadata.is_empty()).then(|| info.metadata.clone());
        self.peer.set_info(info);
        if let Link::Inproc(end) = &self.link {
            self.outgoing.set_inproc_limit(end, self.outgoing.high_water_mark.send_hwm);
        }
    }

    /// The peer is gone; what was received stays readable.
    pub(super) fn end(&mut self) {
        self.outgoing.end();
    }

    /// Tells the receiver something about the peer (see `Incoming::note`). Without memory for it
    /// that counts as dropped.
    pub(crate) fn queue_event_message(&mut self, body: &[u8]) {
        if !self.incoming.queue_event_message(body) {
            self.outgoing.count_dropped();
        }
    }

    /// `News::Readable` has come.
    pub(crate) fn rearm_readable(&self) {
        if let Link::Wire(connection) = &self.link {
            connection.acknowledge_readable();
        }
    }

    /// One of many from now on.
    pub(super) fn set_lean(&mut self) {
        if let (Link::Wire(connection), false) = (&self.link, self.outgoing.lean) {
            connection.set_lean();
            self.outgoing.set_lean();
            self.incoming.set_lean();
        }
    }

    /// The connection behind the pipe, if it is not inproc.
    pub(crate) fn connection(&self) -> Option<&Arc<Connection>> {
        self.link.connection()
    }

    /// The inproc end behind the pipe, if it is one.
    pub(crate) fn inproc_end(&self) -> Option<&InprocEnd> {
        self.link.inproc_end()
    }

    /// ZMQ_SNDHWM or ZMQ_RCVHWM has changed.
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

    /// Before the owner sleeps until it can send: what to poll for room (inproc peers wake the
    /// owner instead).
    pub(crate) fn wait_for_room(&mut self) -> Option<Arc<Stream>> {
        match &self.link {
            Link::Wire(connection) => {
                // It counts as at work for a moment: it writes by itself as soon as that can be.
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

    /// As `recv_last` into a buffer, for `Routes`; its length.
    #[inline(always)]
    pub(crate) fn recv_last_into(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let len = self.incoming.recv_last_into(buffer)?;
        self.record_receipt();
        Some(len)
    }

    /// The same as a message.
    #[inline(always)]
    pub(crate) fn recv_last_message(&mut self, message: &mut Message) -> Option<usize> {
        let len = self.incoming.recv_last_message(message)?;
        self.record_receipt();
        Some(len)
    }

    /// Brings the part that sending touches into the cache, without a look at it.
    #[inline]
    pub(super) fn prefetch(slot: &Option<Pipe>) {
        let start = std::ptr::from_ref(slot).cast::<u8>();
        // Also where the slot does not begin with a line.
        for line in (0..offset_of!(Pipe, outgoing) + Outgoing::HOT_FIELDS_END + 64).step_by(64) {
            prefetch(start.wrapping_add(line));
        }
    }

    /// The same for what lies behind it.
    #[inline]
    pub(super) fn prefetch_queue(&self) {
        self.outgoing.prefetch_queue();
        if let Link::Wire(connection) = &self.link {
            prefetch(&raw const connection.sweep_mark);
        }
    }
}
