//! Processing of the news from the I/O side and from inproc peers, and of the pipes that begin and
//! end.

use super::Socket;
use crate::conn::inproc::Offer;
use crate::conn::{Connection, ConnectionEvent, FinishedHandshakes, News};
use crate::error::Error;
use crate::pattern;
use crate::pipe::{Pipe, PipeId};
use tautline_queue::sync::Arc;

impl Socket {
    /// Processes all news. Fails with `Error::Terminated` after the end of the context, and with
    /// `Error::NotSocket` if another thread closes the socket.
    #[cold]
    pub(super) fn process_news(&mut self) -> Result<(), Error> {
        for item in self.inbox.drain() {
            self.process(item);
            self.remove_closed_pipes();
        }
        self.detach_ended();
        let Some(error) = self.over else { return Ok(()) };
        // Keep the inbox pending, so that every call ends up here.
        self.inbox.push(News::LockRequested);
        if self.inbox.is_exposed() {
            // The caller reports the end. A program that waits on ZMQ_FD is told once.
            self.inbox.waker().clear();
        }
        Err(error)
    }

    /// Processes the data that the owner itself has read.
    pub(super) fn note_arrived(&mut self) {
        // The pattern must not be called while the list is borrowed, and the list keeps its memory.
        let mut arrived = std::mem::take(&mut self.found.arrived);
        if self.inbox.has_pending() {
            // Process the news of a peer's arrival before its data.
            arrived.drain(..).for_each(|token| self.inbox.push(News::Readable(token)));
        }
        for token in arrived.drain(..) {
            self.pattern.pattern_mut().handle_readable(&mut self.pipes, PipeId(token));
            self.remove_closed_pipes();
        }
        self.found.arrived = arrived;
    }

    fn process(&mut self, news: News) {
        match news {
            News::Attached(new, peer) => {
                if let Some(id) = self.attach(Pipe::wire(*new)) {
                    self.ready(id, |pipe| pipe.set_peer(peer), false);
                }
            }
            News::Ready(connection) => {
                if let Some(meeting) = connection.unseen.take_handshakes()
                    && let Some(id) = self.pipe_of(&connection)
                {
                    self.handle_connected(id, *meeting);
                }
            }
            News::Readable(token) => {
                let id = PipeId(token);
                if let Some(pipe) = self.pipes.get(id) {
                    if let Some(connection) = pipe.connection() {
                        connection.acknowledge_readable();
                    }
                    self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
                }
            }
            News::Refused(connection) => connection.report(ConnectionEvent::RefusalSeen),
            News::Ended(connection) => {
                if let Some(id) = self.pipe_of(&connection) {
                    self.handle_ended(id);
                    self.detach_if_read(id);
                }
            }
            News::Interrupted(connection) => {
                let hiccup = self.pipes.options.effective_hiccup_msg().to_vec();
                if let Some(id) = self.pipe_of(&connection)
                    && let Some(pipe) = self.pipes.get(id)
                    && !hiccup.is_empty()
                {
                    pipe.queue_event_message(&hiccup);
                    self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
                }
            }
            News::LockRequested => {}
            News::NameChanged => super::endpoints::names::disconnect_moved(self),
            News::TapsChanged => self.update_taps(),
            News::TopicWanted => self.pattern.pattern_mut().request_topic(),
            News::Inproc(offer) => self.attach_inproc(*offer),
            News::PeerBound(token, peer) => self.ready(PipeId(token), |pipe| pipe.set_peer(peer), false),
            News::PeerClosed(token) => {
                let id = PipeId(token);
                if self.pipes.get(id).is_some_and(|pipe| pipe.inproc_end().is_some_and(|end| end.is_closed()))
                {
                    self.handle_ended(id);
                    self.detach_if_read(id);
                }
            }
            News::Terminated => self.over = self.over.or(Some(Error::Terminated)),
            News::Closed => self.over = Some(Error::NotSocket),
        }
    }

    /// Adds a pipe. Returns `None` if the pattern refuses it.
    pub(super) fn attach(&mut self, mut pipe: Pipe) -> Option<PipeId> {
        if pipe.peer.connected_here
            && let Some(connection) = pipe.connection()
        {
            pipe.peer.routing_id =
                connection.options.connect_routing_id.as_deref().cloned().unwrap_or_default();
        }
        let id = self.pipes.insert(pipe);
        let receive_hwm = self.pipes.options.receive_hwm;
        if let Some(pipe) = self.pipes.get(id) {
            pipe.register(id, &self.inbox, receive_hwm);
            let takes = pattern::entry(self.socket_type).is_some_and(|entry| entry.takes_subscriptions);
            if let (Some(end), false) = (pipe.inproc_end(), takes) {
                // As over the other transports, a socket of another type does not see
                // subscriptions. Drop those that arrived earlier:
                end.refuse_commands();
                pipe.incoming.head();
            }
        }
        self.pattern.pattern_mut().attach(&mut self.pipes, id);
        self.remove_closed_pipes();
        self.show_pipe(id);
        self.pipes.get(id).is_some().then_some(id)
    }

    /// Adds a side of an inproc pipe. The other side exists already, or has existed.
    pub(super) fn attach_inproc(&mut self, offer: Offer) {
        let peer = offer.peer.clone();
        let send_hwm = self.pipes.options.send_hwm;
        if let Some(id) = self.attach(Pipe::inproc(offer, send_hwm)) {
            self.ready(id, |pipe| pipe.set_peer(peer), false);
            if self.pipes.get(id).is_some_and(|pipe| pipe.has_ended()) {
                self.handle_ended(id);
            }
        }
    }

    /// Handles the arrival of the peer of a pipe made by `connect`. All disconnects and reconnects
    /// in between are reported as one.
    fn handle_connected(
        &mut self,
        id: PipeId,
        FinishedHandshakes { peer, first, reconnects }: FinishedHandshakes,
    ) {
        self.reconnects += reconnects;
        if let Some(pipe) = self.pipes.get(id) {
            pipe.peer.reconnects = pipe.peer.reconnects.saturating_add(reconnects as u32);
        }
        let again = (reconnects > 0 && first).then(|| peer.clone());
        self.ready(id, |pipe| pipe.set_peer(peer), !first);
        if let Some(peer) = again {
            self.ready(id, |pipe| pipe.set_peer(peer), true);
        }
    }

    pub(super) fn ready(&mut self, id: PipeId, note: impl FnOnce(&mut Pipe), reconnected: bool) {
        let Some(pipe) = self.pipes.get(id) else { return };
        note(pipe);
        self.pattern.pattern_mut().ready(&mut self.pipes, id, reconnected);
        if self.pipes.has_closing() {
            self.remove_closed_pipes();
        }
        self.show_peer(id);
        if self.pipes.get(id).is_some() {
            self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
        }
    }

    /// Handles a pipe whose peer is gone. The pipe is removed when it is read empty.
    pub(super) fn handle_ended(&mut self, id: PipeId) {
        self.pipes.end(id);
        self.show_peer(id);
        self.ending.push(id);
        self.pattern.pattern_mut().handle_readable(&mut self.pipes, id);
    }

    /// Detaches the pipes without a peer that have been read empty.
    pub(super) fn detach_ended(&mut self) {
        let mut index = 0;
        while let Some(&id) = self.ending.get(index) {
            if self.is_unread(id) {
                index += 1;
                continue;
            }
            self.ending.swap_remove(index);
            self.detach_one(id);
        }
    }

    /// Detaches a pipe that has just ended and is empty, before the next news: a new peer may need
    /// its place.
    fn detach_if_read(&mut self, id: PipeId) {
        if !self.pipes.is_closing(id) && !self.is_unread(id) {
            self.ending.retain(|other| *other != id);
            self.detach_one(id);
        }
    }

    /// True if an ended pipe still has unread messages.
    fn is_unread(&mut self, id: PipeId) -> bool {
        self.pipes.get(id).is_some_and(|pipe| pipe.has_ended() && pipe.can_recv())
    }

    fn detach_one(&mut self, id: PipeId) {
        // If the pattern has closed the ended pipe, another pipe may use its id by now.
        if self.pipes.get(id).is_some_and(|pipe| pipe.has_ended()) {
            self.detach(id);
        }
    }

    /// Removes a pipe for good.
    pub(super) fn detach(&mut self, id: PipeId) -> Option<Pipe> {
        self.pattern.pattern_mut().detach(&mut self.pipes, id);
        self.remove_pipe(id)
    }

    /// Removes all state under the id of a pipe, because another pipe may reuse the id.
    fn remove_pipe(&mut self, id: PipeId) -> Option<Pipe> {
        self.ending.retain(|other| *other != id);
        let pipe = self.pipes.remove(id)?;
        self.show_removed(id);
        if pipe.connection().is_none() {
            self.forget_inproc(id);
        }
        Some(pipe)
    }

    /// Processes commands from peers that the I/O thread may not have read yet.
    #[cold]
    pub(super) fn read_due(&mut self) -> Result<(), Error> {
        match &self.set {
            Some(set) if set.baton.is_kept() => self.read_available(),
            Some(set) => {
                if !set.glance() {
                    // The I/O thread may have been interrupted before its read.
                    set.acquire();
                    set.read_ready();
                    set.hand_over();
                }
                if self.inbox.has_pending() { self.process_news() } else { Ok(()) }
            }
            None => Ok(()),
        }
    }

    /// Ends the pipes that the pattern has closed.
    #[inline(never)]
    pub(super) fn remove_closed_pipes(&mut self) {
        while self.pipes.has_closing() {
            for id in self.pipes.take_closing() {
                let Some(pipe) = self.remove_pipe(id) else { continue };
                if let Some(connection) = pipe.connection() {
                    connection.report(ConnectionEvent::GivenUp);
                }
            }
        }
    }

    pub(super) fn pipe_of(&mut self, connection: &Arc<Connection>) -> Option<PipeId> {
        let id = PipeId(connection.token()?);
        let pipe = self.pipes.get(id)?;
        pipe.connection().is_some_and(|mine| Arc::ptr_eq(mine, connection)).then_some(id)
    }
}
