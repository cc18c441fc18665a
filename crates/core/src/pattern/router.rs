//! ROUTER (RFC 28): every peer has a routing id. The first part of a message names the peer that it
//! goes to or comes from.
//!
//! A peer is addressable from `ready` on: by the id that it announced, by the one set with
//! ZMQ_CONNECT_ROUTING_ID, or by a generated one. A second peer with an id in use is ignored (its
//! messages are dropped) until the first one leaves. With ZMQ_ROUTER_HANDOVER the second peer takes
//! over the id, and the first is ignored. A peer that has left has no id, but may still have unread
//! messages. Messages that a peer had sent before it lost its id are received before any message
//! from the next peer. With ZMQ_ROUTER_RAW the peers are plain byte streams, and sending an empty
//! message closes one.

use super::greeting::{greet, probe};
use super::ignored_peers::IgnoredPeers;
use super::rotation::{FairQueue, discard};
use super::routing::{PeerNotices, RoutingIds};
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{DiscardReason, OnFull, Part, Pipe, PipeId, Pipes, Route, Target};

#[cfg(test)]
mod tests;

/// ZMQ_ROUTER_NOTIFY: notify the program of new peers.
const NOTIFY_CONNECT: i32 = 1;
/// ZMQ_ROUTER_NOTIFY: notify the program of peers that have left.
const NOTIFY_DISCONNECT: i32 = 2;

/// The behaviour of a ROUTER socket.
#[derive(Debug, Default)]
pub(crate) struct Router {
    incoming: FairQueue,
    ids: RoutingIds,
    notices: PeerNotices,
    ignored: IgnoredPeers,
    /// The full peer that caused a message to be refused (ZMQ_ROUTER_MANDATORY).
    refused: Option<PipeId>,
}

impl Router {
    /// Makes a pipe addressable by `routing_id`, if the id is free or its holder loses it now.
    fn assign_id(&mut self, pipes: &mut Pipes, id: PipeId, routing_id: Vec<u8>) {
        if let Some(holder) = self.ids.holder(&routing_id) {
            if !pipes.check_closed(holder) {
                if !pipes.options.router_handover {
                    pipes.shared.discards.count_duplicate(&routing_id);
                    self.ignore(pipes, id, routing_id);
                    return;
                }
                pipes.shared.discards.count_taken_over(&routing_id);
            }
            self.replace(pipes, holder);
        }
        let notify = pipes.options.router_notify;
        self.ids.insert(pipes, id, routing_id);
        let Some(pipe) = pipes.get(id) else { return };
        // If we connect to the peer, it is not connected yet: `ready` notifies later.
        if notify & NOTIFY_CONNECT != 0 && !pipe.is_inproc() && pipe.peer.info().is_some() {
            let routing_id = pipe.peer.routing_id.clone();
            self.notices.push(pipe, &routing_id);
        }
        self.incoming.attach(id);
    }

    /// Drops the messages of this pipe until the routing id that it wants is free.
    fn ignore(&mut self, pipes: &mut Pipes, id: PipeId, routing_id: Vec<u8>) {
        let Some(pipe) = pipes.get(id) else { return };
        pipe.peer.routing_id = routing_id;
        self.ignored.insert(id, pipe);
        discard(pipes, id, DiscardReason::RefusedPeer);
    }

    /// Takes the routing id from an addressable pipe, to give it to another one. The messages that
    /// the first pipe has already received are delivered first.
    fn replace(&mut self, pipes: &mut Pipes, id: PipeId) {
        let Some(routing_id) = self.unassign_id(pipes, id) else { return };
        if pipes.drain(id, |pipe| self.notices.take(pipe, &routing_id)) {
            self.notify_disconnect(pipes, id, &routing_id);
            pipes.close(id);
        } else {
            self.ignore(pipes, id, routing_id);
        }
    }

    /// Notifies for ZMQ_ROUTER_NOTIFY that this pipe has lost `routing_id`.
    fn notify_disconnect(&mut self, pipes: &mut Pipes, id: PipeId, routing_id: &[u8]) {
        if pipes.options.router_notify & NOTIFY_DISCONNECT != 0
            && let Some(pipe) = pipes.get(id)
            && !pipe.is_inproc()
            && pipe.has_ended()
            && pipe.peer.info().is_some()
        {
            self.notices.push(pipe, routing_id);
        }
    }

    /// Gives the routing id to the next pipe that waits for it.
    fn reassign_id(&mut self, pipes: &mut Pipes, routing_id: &[u8]) {
        // With ZMQ_ROUTER_HANDOVER, the last arrival gets the routing id.
        let heir = self.ignored.successor(routing_id, pipes.options.router_handover);
        if let Some(id) = heir
            && let Some(pipe) = pipes.get(id)
        {
            self.ignored.remove(id, pipe);
            self.assign_id(pipes, id, routing_id.to_vec());
        }
    }

    /// Ends all unfinished operations with an addressable pipe. Returns its former routing id.
    fn unassign_id(&mut self, pipes: &mut Pipes, id: PipeId) -> Option<Vec<u8>> {
        if pipes.address_cache.message_target() == Some(Some(id)) {
            pipes.address_cache.begin(None);
            if let Some(pipe) = pipes.get(id) {
                pipe.outgoing.rollback();
            }
        }
        if self.refused == Some(id) {
            self.refused = None;
        }
        self.incoming.detach(pipes, id);
        self.ids.remove(pipes, id)
    }

    /// Handles the first part of a message: finds and returns the peer, if it has room. The part is
    /// not forwarded.
    fn address(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Option<PipeId>, Error> {
        let mandatory = pipes.options.router_mandatory;
        let id = self.ids.find(pipes, part.bytes());
        // If the message would be dropped and not refused, also wait for a thread that is writing
        // the queue.
        let has_room = |pipe: &mut Pipe| match mandatory {
            true => pipe.outgoing.has_room(OnFull::Refuse { patient: part.patient }),
            false => pipe.outgoing.has_room(OnFull::DropUncounted),
        };
        let to = id.filter(|&id| pipes.get(id).is_some_and(has_room));
        if mandatory && to.is_none() {
            self.refused = id.filter(|&id| pipes.get(id).is_some_and(|pipe| !pipe.has_ended()));
            return Err(if self.refused.is_some() { Error::Again } else { Error::HostUnreachable });
        }
        if to.is_none() {
            count_dropped(pipes, id, part.bytes());
        }
        pipes.address_cache.begin(to);
        part.consume();
        Ok(to)
    }

    /// Handles a part that is not the first one of its message. Returns the pipe that it goes to.
    fn send_remaining(
        &mut self,
        pipes: &mut Pipes,
        to: Option<PipeId>,
        part: &mut Part<'_>,
    ) -> Result<Option<PipeId>, Error> {
        let raw = pipes.options.router_raw;
        part.more &= !raw;
        let last = !part.more;
        if last {
            pipes.address_cache.finish();
        }
        if raw
            && part.bytes().is_empty()
            && let Some(id) = to
        {
            self.unassign_id(pipes, id);
            pipes.close(id);
            part.consume();
            return Ok(to);
        }
        let Some(pipe) = to.and_then(|id| pipes.get_begun(id)) else {
            part.consume();
            return Ok(None);
        };
        let sent = pipe.send(part);
        if sent.is_err() && last {
            pipes.address_cache.begin(to);
        }
        sent?;
        Ok(to)
    }

    fn next_to(&self, pipes: &Pipes) -> Route {
        if pipes.options.router_raw {
            Route::NONE
        } else {
            Route::by_routing_id(pipes.address_cache.message_target().flatten())
        }
    }

    fn next_from(&self, pipes: &Pipes) -> Route {
        let sole = self.incoming.sole().filter(|_| self.notices.is_empty());
        Route::with_routing_id(sole, pipes.receiving)
    }

    /// Drops the messages of ignored pipes that do not announce them.
    fn discard_ignored(&mut self, pipes: &mut Pipes) {
        for &id in self.ignored.unannounced() {
            discard(pipes, id, DiscardReason::RefusedPeer);
        }
    }
}

impl Pattern for Router {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        greet(pipes, id);
        probe(pipes, id);
        let raw = pipes.options.router_raw;
        let Some(pipe) = pipes.get(id) else { return };
        let chosen = std::mem::take(&mut pipe.peer.routing_id);
        if !chosen.is_empty() {
            self.assign_id(pipes, id, chosen);
        } else if raw {
            let made = self.ids.make();
            self.assign_id(pipes, id, made);
        }
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, reconnected: bool) {
        let notify = pipes.options.router_notify;
        let Some(pipe) = pipes.get(id) else { return };
        if pipe.peer.routing_id.is_empty() {
            let routing_id = match pipe.peer.info() {
                Some(peer) if !peer.routing_id.is_empty() => peer.routing_id.clone(),
                _ => self.ids.make(),
            };
            self.assign_id(pipes, id, routing_id);
        } else if notify != 0 && !pipe.is_inproc() && !self.ignored.contains(id) {
            let routing_id = pipe.peer.routing_id.clone();
            // The pipe has outlived its connection, and the peer keeps its id.
            if reconnected && notify & NOTIFY_DISCONNECT != 0 {
                self.notices.push(pipe, &routing_id);
            }
            if notify & NOTIFY_CONNECT != 0 {
                self.notices.push(pipe, &routing_id);
            }
        }
    }

    fn handle_readable(&mut self, pipes: &mut Pipes, id: PipeId) {
        if !self.ignored.is_empty() {
            if self.ignored.contains(id) {
                discard(pipes, id, DiscardReason::RefusedPeer);
                return;
            }
            if let Some(pipe) = pipes.get(id)
                && pipe.has_ended()
            {
                // The routing id of this peer is free now, although its pipe may still have unread
                // messages.
                let routing_id = pipe.peer.routing_id.clone();
                self.reassign_id(pipes, &routing_id);
            }
        }
        self.incoming.mark_readable(id);
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        if let Some(pipe) = pipes.get(id)
            && self.ignored.remove(id, pipe)
        {
            return;
        }
        let Some(routing_id) = self.unassign_id(pipes, id) else { return };
        self.notify_disconnect(pipes, id, &routing_id);
        self.reassign_id(pipes, &routing_id);
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        let to = match pipes.address_cache.message_target() {
            Some(to) => self.send_remaining(pipes, to, part)?,
            None if part.more => self.address(pipes, part)?,
            None => {
                // A routing id without further parts is not a message.
                part.consume();
                None
            }
        };
        Ok(Sent { to, route: self.next_to(pipes) })
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if pipes.receiving {
            let received = self.incoming.recv_remaining(pipes, target)?;
            return Ok(Received { route: self.next_from(pipes), ..received });
        }
        if !self.notices.is_empty()
            && let Some(notice) = self.notices.recv(target)
        {
            return Ok(Received::new(None, notice));
        }
        let Some(id) = self.incoming.select(pipes) else {
            self.discard_ignored(pipes);
            return Err(Error::Again);
        };
        let routing_id = pipes.deliver_routing_id(id, target)?;
        Ok(Received { route: self.next_from(pipes), ..Received::new(Some(id), routing_id) })
    }

    fn can_send(&mut self, pipes: &mut Pipes) -> bool {
        // Without ZMQ_ROUTER_MANDATORY a message without a destination is dropped, so sending never
        // blocks.
        pipes.address_cache.message_target().is_some()
            || !pipes.options.router_mandatory
            || self
                .ids
                .iter()
                .any(|id| pipes.get(id).is_some_and(|pipe| pipe.outgoing.has_room(OnFull::Wait)))
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.refused
            .and_then(|id| pipes.get(id))
            .is_none_or(|pipe| pipe.outgoing.has_room(OnFull::Wait) || pipe.has_ended())
    }

    fn pipe_by_routing_id(&self, routing_id: &[u8]) -> Result<Option<PipeId>, Error> {
        Ok(self.ids.holder(routing_id))
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        if !self.notices.is_empty() || self.incoming.can_recv(pipes) {
            return true;
        }
        self.discard_ignored(pipes);
        false
    }
}

/// Counts a dropped message: its peer has no room, or the routing id is unknown.
#[cold]
fn count_dropped(pipes: &mut Pipes, id: Option<PipeId>, name: &[u8]) {
    match id.and_then(|id| pipes.get(id)).filter(|pipe| !pipe.has_ended()) {
        Some(pipe) => pipe.outgoing.drop_message(),
        None => pipes.shared.count_unroutable(name),
    }
}
