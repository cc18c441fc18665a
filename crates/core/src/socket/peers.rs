//! Single peers of a socket, by number or name, and the groups of a DISH.

use super::Socket;
use crate::conn::ConnectionEvent;
use crate::error::{Error, check_shortage};
use crate::pipe::OnFull;

const POLLIN: i32 = 1;
const POLLOUT: i32 = 2;

impl Socket {
    /// Joins a group, zmq_join(3).
    ///
    /// # Errors
    /// [`Error::NotSupported`] for all but DISH; [`Error::Invalid`] for a name that is too long,
    /// contains a NUL or was joined before; [`Error::Terminated`].
    pub fn join(&mut self, group: &[u8]) -> Result<(), Error> {
        self.check_alive()?;
        check_shortage()?;
        self.pattern.pattern_mut().join(&mut self.pipes, group, true)
    }

    /// Leaves a group, zmq_leave(3).
    ///
    /// # Errors
    /// [`Error::NotSupported`] for all but DISH; [`Error::Invalid`] for a group that was not
    /// joined; [`Error::Terminated`].
    pub fn leave(&mut self, group: &[u8]) -> Result<(), Error> {
        self.check_alive()?;
        self.pattern.pattern_mut().join(&mut self.pipes, group, false)
    }

    /// Connects a PEER to `endpoint` and returns the routing id of the peer there,
    /// zmq_connect_peer(3).
    ///
    /// # Errors
    /// [`Error::NotSupported`] for all but PEER, [`Error::Fault`] with ZMQ_IMMEDIATE, and as
    /// [`Socket::connect`].
    pub fn connect_peer(&mut self, endpoint: &str) -> Result<u32, Error> {
        if !self.pipes.options.type_info().can_connect_peer {
            return Err(Error::NotSupported);
        }
        if self.pipes.options.immediate {
            // The peer gets its pipe, and so its number, only when it is connected.
            return Err(Error::Fault);
        }
        let id = self.connect_pipe(endpoint)?.ok_or(Error::Invalid)?;
        self.pattern.peer_number(id).ok_or(Error::Invalid)
    }

    /// Ends the connection to the peer with this routing id, of a SERVER or PEER.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for all other types, [`Error::HostUnreachable`] for an unknown peer,
    /// [`Error::Terminated`].
    pub fn disconnect_peer(&mut self, routing_id: u32) -> Result<(), Error> {
        self.check_alive()?;
        if !self.pipes.options.type_info().has_numbered_peers {
            return Err(Error::NotSupported);
        }
        let id = self.pattern.pipe_by_number(routing_id).ok_or(Error::HostUnreachable)?;
        let Some(pipe) = self.detach(id) else { return Err(Error::HostUnreachable) };
        if let Some(connection) = pipe.connection() {
            connection.report(ConnectionEvent::GivenUp);
        }
        Ok(())
    }

    /// Returns the operations (ZMQ_POLLIN and ZMQ_POLLOUT) that are possible now with the peer of
    /// this routing id, of a ROUTER.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for all but ROUTER, [`Error::HostUnreachable`] for an unknown peer,
    /// [`Error::Terminated`].
    pub fn peer_state(&mut self, routing_id: &[u8]) -> Result<i32, Error> {
        self.check_alive()?;
        let id = self.pattern.pipe_by_routing_id(routing_id)?.ok_or(Error::HostUnreachable)?;
        let pipe = self.pipes.get(id).ok_or(Error::HostUnreachable)?;
        Ok((if pipe.can_recv() { POLLIN } else { 0 })
            | (if pipe.outgoing.has_room(OnFull::Wait) { POLLOUT } else { 0 }))
    }
}
