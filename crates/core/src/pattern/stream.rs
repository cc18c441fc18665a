//! STREAM: peers that do not use ZMTP. Bytes that arrive are delivered as a message: the peer's
//! routing id and a part with the bytes.
//!
//! With ZMQ_STREAM_NOTIFY (on by default) an empty message reports a connect or disconnect. Sending
//! an empty message to a peer closes it. Routing ids are generated here, or set with
//! ZMQ_CONNECT_ROUTING_ID.

use super::rotation::FairQueue;
use super::routing::{PeerNotices, RoutingIds};
use super::{Pattern, Received, Sent};
use crate::error::Error;
use crate::pipe::{OnFull, Part, PipeId, Pipes, Route, Target};
use tautline_queue::sync::Arc;

#[cfg(test)]
mod tests;

/// The behaviour of a STREAM socket.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    incoming: FairQueue,
    ids: RoutingIds,
    notices: PeerNotices,
    /// True if the routing id was sent and the bytes are due.
    sending: bool,
    /// Destination of the bytes. `None` means that they are dropped.
    sending_to: Option<PipeId>,
    /// The full peer that caused a message to be refused.
    refused: Option<PipeId>,
}

impl Stream {
    fn notify(&mut self, pipes: &mut Pipes, id: PipeId, routing_id: &[u8]) {
        if pipes.options.stream_notify
            && let Some(pipe) = pipes.get(id)
        {
            self.notices.push(pipe, routing_id);
        }
    }

    fn forget(&mut self, pipes: &mut Pipes, id: PipeId) -> Option<Vec<u8>> {
        if self.sending_to == Some(id) {
            self.sending_to = None;
        }
        if self.refused == Some(id) {
            self.refused = None;
        }
        self.incoming.detach(pipes, id);
        self.ids.remove(pipes, id)
    }
}

impl Pattern for Stream {
    fn attach(&mut self, pipes: &mut Pipes, id: PipeId) {
        let Some(pipe) = pipes.get(id) else { return };
        let chosen = std::mem::take(&mut pipe.peer.routing_id);
        if chosen.is_empty() || self.ids.holder(&chosen).is_some() {
            let made = self.ids.make();
            self.ids.insert(pipes, id, made.clone());
            // ZMQ_ROUTING_ID returns this id, so that a program learns the id of the peer that it
            // has just connected to.
            Arc::make_mut(&mut pipes.options).routing_id = made;
        } else {
            self.ids.insert(pipes, id, chosen);
        }
        self.incoming.attach(id);
    }

    fn ready(&mut self, pipes: &mut Pipes, id: PipeId, reconnected: bool) {
        let Some(pipe) = pipes.get(id) else { return };
        let routing_id = pipe.peer.routing_id.clone();
        if reconnected {
            // This notification reports the end of the former connection.
            self.notify(pipes, id, &routing_id);
        }
        self.notify(pipes, id, &routing_id);
    }

    fn handle_readable(&mut self, _pipes: &mut Pipes, id: PipeId) {
        self.incoming.mark_readable(id);
    }

    fn detach(&mut self, pipes: &mut Pipes, id: PipeId) {
        if let Some(routing_id) = self.forget(pipes, id)
            && pipes.get(id).is_some_and(|pipe| pipe.has_ended() && pipe.peer.info().is_some())
        {
            self.notify(pipes, id, &routing_id);
        }
    }

    fn send(&mut self, pipes: &mut Pipes, part: &mut Part<'_>) -> Result<Sent, Error> {
        if !self.sending {
            if part.more {
                let id = self.ids.find(pipes, part.bytes()).ok_or(Error::HostUnreachable)?;
                let Some(pipe) = pipes.get(id) else { return Err(Error::HostUnreachable) };
                if !pipe.outgoing.has_room(OnFull::Wait) {
                    // A peer that has left never reads its messages, so a wait for room would never
                    // end.
                    self.refused = (!pipe.has_ended()).then_some(id);
                    return Err(if self.refused.is_some() { Error::Again } else { Error::HostUnreachable });
                }
                self.sending_to = Some(id);
            }
            self.sending = true;
            part.consume();
            return Ok(Sent { to: self.sending_to, route: Route::NONE });
        }
        self.sending = false;
        part.more = false;
        let to = self.sending_to.take();
        match to {
            Some(id) if part.bytes().is_empty() => {
                self.forget(pipes, id);
                pipes.close(id);
            }
            Some(id) => {
                if let Some(pipe) = pipes.get_begun(id)
                    && let Err(error) = pipe.send(part)
                {
                    (self.sending, self.sending_to) = (true, Some(id));
                    return Err(error.into());
                }
            }
            None => {}
        }
        part.consume();
        Ok(Sent { to, route: Route::NONE })
    }

    fn recv(&mut self, pipes: &mut Pipes, target: &mut Target<'_>) -> Result<Received, Error> {
        if pipes.receiving {
            return self.incoming.recv(pipes, target);
        }
        if !self.notices.is_empty()
            && let Some(notice) = self.notices.recv(target)
        {
            return Ok(Received::new(None, notice));
        }
        let id = self.incoming.select(pipes).ok_or(Error::Again)?;
        Ok(Received::new(Some(id), pipes.deliver_routing_id(id, target)?))
    }

    fn can_send(&mut self, _pipes: &mut Pipes) -> bool {
        true
    }

    fn can_send_refused(&mut self, pipes: &mut Pipes) -> bool {
        self.refused
            .and_then(|id| pipes.get(id))
            .is_none_or(|pipe| pipe.outgoing.has_room(OnFull::Wait) || pipe.has_ended())
    }

    fn can_recv(&mut self, pipes: &mut Pipes) -> bool {
        !self.notices.is_empty() || self.incoming.can_recv(pipes)
    }
}
