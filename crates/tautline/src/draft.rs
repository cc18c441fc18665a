//! The kinds that are drafts in libzmq: CLIENT and SERVER, RADIO and DISH, SCATTER and GATHER,
//! PEER, CHANNEL, DGRAM. Other ZeroMQ implementations may lack them. All except DGRAM have messages
//! of one part. The message itself carries the id of its peer.

use std::num::NonZeroU32;

use tautline_core as core;

use crate::Socket;
use crate::aio;
use crate::error::{Error, Result};
use crate::kind;
use crate::message::Message;

/// Id of a SERVER's or PEER's peer that sent a message, or that receives one. It is valid as long
/// as that peer is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(NonZeroU32);

impl PeerId {
    /// Returns the id as a number, as in the C library.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl Message {
    /// Returns the sender of a message that a SERVER or PEER has received.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Client, Context, Message, Server};
    ///
    /// let context = Context::new();
    /// let mut server = Server::builder(&context).bind("inproc://server")?;
    /// let mut client = Client::builder(&context).connect("inproc://server")?;
    /// client.send("question")?;
    ///
    /// let question = server.recv()?;
    /// let peer = question.peer_id().unwrap();
    /// server.send(Message::from("one answer").for_peer(peer))?;
    /// server.send(Message::from("another").for_peer(peer))?;
    /// assert_eq!(client.recv()?, "one answer");
    /// # assert_eq!(client.recv()?, "another");
    /// # Ok(()) }
    /// ```
    pub fn peer_id(&self) -> Option<PeerId> {
        NonZeroU32::new(self.0.routing_id()).map(PeerId)
    }

    /// Addresses the message to this peer of a SERVER or PEER. A received message that is sent back
    /// to its sender needs no address.
    #[must_use]
    pub fn for_peer(mut self, peer: PeerId) -> Self {
        self.0.set_routing_id(peer.get());
        self
    }

    /// Returns the group of a message that a DISH has received; empty for other messages.
    pub fn group(&self) -> &[u8] {
        self.0.group().to_bytes()
    }

    /// Addresses the message to the peers that have joined this group, for RADIO.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the name has more than 255 bytes, or a NUL.
    pub fn for_group(mut self, group: impl AsRef<[u8]>) -> Result<Self> {
        let group = group.as_ref();
        if is_group(group) && self.0.set_group(group) { Ok(self) } else { Err(name_fault(group)) }
    }
}

fn is_group(group: &[u8]) -> bool {
    group.len() <= 255 && !group.contains(&0)
}

#[cold]
fn name_fault(group: &[u8]) -> Error {
    Error::invalid(format!(
        "the name of a group has at most 255 bytes, none of them NUL; this one has {}",
        group.len()
    ))
}

#[cold]
fn group_error(error: core::Error, group: &[u8], otherwise: &str) -> Error {
    match error {
        core::Error::Invalid if !is_group(group) => name_fault(group),
        core::Error::Invalid => {
            Error::invalid(format!("the group {:?} {otherwise}", String::from_utf8_lossy(group)))
        }
        other => other.into(),
    }
}

impl Socket<kind::Dish> {
    /// Joins a group: receives the messages that RADIOs send to it.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// use tautline::{Context, Dish, Message, Radio};
    ///
    /// let context = Context::new();
    /// let mut radio = Radio::builder(&context).bind("inproc://air")?;
    /// let mut dish = Dish::builder(&context).connect("inproc://air")?;
    /// dish.join("weather")?;
    /// radio.send(Message::from("6 degrees").for_group("weather")?)?;
    /// let news = dish.recv()?;
    /// assert_eq!((news.group(), news.as_str()), (&b"weather"[..], Ok("6 degrees")));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the group is already joined, or if its name has more than 255
    /// bytes; or [`Error::Terminated`].
    pub fn join(&mut self, group: impl AsRef<[u8]>) -> Result<()> {
        let group = group.as_ref();
        self.inner.join(group).map_err(|error| group_error(error, group, "is already joined"))
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the group is not joined, or [`Error::Terminated`].
    pub fn leave(&mut self, group: impl AsRef<[u8]>) -> Result<()> {
        let group = group.as_ref();
        self.inner.leave(group).map_err(|error| group_error(error, group, "is not joined"))
    }
}

impl Socket<kind::Peer> {
    /// Connects to `endpoint`, as [`connect`](Self::connect) does, and returns the id by which
    /// messages are addressed to this peer.
    ///
    /// # Errors
    /// Returns the errors of [`connect`](Self::connect).
    pub fn connect_peer(&mut self, endpoint: &str) -> Result<PeerId> {
        let id = self
            .inner
            .connect_peer(endpoint)
            .map_err(|error| Error::for_endpoint(error, &self.inner, endpoint, true))?;
        NonZeroU32::new(id).map(PeerId).ok_or_else(|| Error::invalid("the peer has no id"))
    }
}

/// CLIENT: sends requests to SERVERs, without fixed turns.
pub type Client = Socket<kind::Client>;
/// SERVER: replies by the [`PeerId`] of a message.
pub type Server = Socket<kind::Server>;
/// RADIO: distributes messages to groups.
pub type Radio = Socket<kind::Radio>;
/// DISH: receives the messages of the groups that it has joined.
pub type Dish = Socket<kind::Dish>;
/// SCATTER: distributes work.
pub type Scatter = Socket<kind::Scatter>;
/// GATHER: receives work.
pub type Gather = Socket<kind::Gather>;
/// PEER: sends requests and replies, by the [`PeerId`] of a message.
pub type Peer = Socket<kind::Peer>;
/// CHANNEL: an exclusive pair.
pub type Channel = Socket<kind::Channel>;
/// DGRAM: `udp` datagrams, each an address and a body.
pub type Dgram = Socket<kind::Dgram>;

impl aio::Socket<kind::Dish> {
    /// See [`Socket::join`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::join`].
    pub fn join(&mut self, group: impl AsRef<[u8]>) -> Result<()> {
        self.get_mut().join(group)
    }

    /// See [`Socket::leave`].
    ///
    /// # Errors
    /// Returns the errors of [`Socket::leave`].
    pub fn leave(&mut self, group: impl AsRef<[u8]>) -> Result<()> {
        self.get_mut().leave(group)
    }
}
