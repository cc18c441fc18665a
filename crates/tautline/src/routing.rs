//! Routing ids: the names of a ROUTER's peers.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use crate::Socket;
use crate::error::{Error, Result};
use crate::kind::{Addresses, Kind};
use crate::message::{Frame, Message, Multipart};

/// Name of a peer of a ROUTER or STREAM: 1 to 255 bytes. Either the peer has chosen it
/// ([`routing_id`](crate::Builder::routing_id)), or the ROUTER has generated it: 5 bytes, the first
/// one zero.
///
/// Compares, hashes and is looked up in maps like its bytes.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use std::collections::HashMap;
/// use tautline::{Context, Dealer, Router, RoutingId};
///
/// let context = Context::new();
/// let mut router = Router::builder(&context).bind("inproc://ids")?;
/// let mut dealer = Dealer::builder(&context).routing_id("worker-1").connect("inproc://ids")?;
/// dealer.send("ready")?;
///
/// let mut workers = HashMap::new();
/// let (id, message) = router.recv_from()?;
/// assert_eq!(message[0], "ready");
/// workers.insert(id, 0);
/// assert!(workers.contains_key("worker-1".as_bytes()));
///
/// router.send_to(&RoutingId::new("worker-1")?, "work")?;
/// assert_eq!(dealer.recv()?, "work");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RoutingId(Message);

impl RoutingId {
    /// Creates the id that a peer has chosen.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if it is empty or has more than 255 bytes.
    pub fn new(id: impl AsRef<[u8]>) -> Result<Self> {
        RoutingId::try_from(Message::from(id.as_ref()))
    }

    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// True if the ROUTER has generated it.
    pub fn is_generated(&self) -> bool {
        self.first() == Some(&0)
    }
}

impl TryFrom<Message> for RoutingId {
    type Error = Error;

    /// Converts the first part of a message that a ROUTER has received.
    fn try_from(mut message: Message) -> Result<Self> {
        if !matches!(message.len(), 1..=255) {
            return Err(Error::invalid(format!("a routing id has 1 to 255 bytes, not {}", message.len())));
        }
        // An id may be kept for a long time, so it must not keep the properties of the connection
        // alive.
        message.0.clear_properties();
        Ok(RoutingId(message))
    }
}

impl From<RoutingId> for Message {
    fn from(id: RoutingId) -> Self {
        id.0
    }
}

impl<'a> From<&'a RoutingId> for Frame<'a> {
    fn from(id: &'a RoutingId) -> Self {
        Frame::Borrowed(&id.0)
    }
}

impl Deref for RoutingId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for RoutingId {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for RoutingId {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl PartialOrd for RoutingId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RoutingId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for RoutingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutingId(b\"{}\")", self.escape_ascii())
    }
}

/// Splits a received message into the id and the remaining parts.
pub(crate) fn split_routing_id(mut message: Multipart) -> Result<(RoutingId, Multipart)> {
    let id = message.pop_front().ok_or_else(|| Error::invalid("the message has no routing id"))?;
    Ok((RoutingId::try_from(id)?, message))
}

pub(crate) fn addressed<'a, I>(peer: &'a RoutingId, parts: I) -> impl Iterator<Item = Frame<'a>>
where
    I: IntoIterator,
    I::Item: Into<Frame<'a>>,
{
    std::iter::once(Frame::from(peer)).chain(parts.into_iter().map(Into::into))
}

impl<K: Kind> Socket<K> {
    /// Receives a whole message and the id of its sender. A message from a REQ begins with an empty
    /// part. Its reply must begin with an empty part as well.
    ///
    /// # Errors
    /// Returns the errors of [`recv`](Self::recv).
    pub fn recv_from(&mut self) -> Result<(RoutingId, Multipart)>
    where
        K: Addresses,
    {
        split_routing_id(self.recv_multipart()?)
    }

    /// Receives a whole message and the id of its sender, if a message is queued. Never waits.
    ///
    /// # Errors
    /// Returns [`Error::WouldBlock`] if no message is queued, and the errors of
    /// [`recv`](Self::recv).
    pub fn try_recv_from(&mut self) -> Result<(RoutingId, Multipart)>
    where
        K: Addresses,
    {
        split_routing_id(self.try_recv_multipart()?)
    }

    /// Sends a message of one part to this peer. If the peer is not connected, the message is
    /// dropped, or with [`router_mandatory`](crate::Builder::router_mandatory) the call fails.
    ///
    /// ```
    /// # fn main() -> tautline::Result<()> {
    /// # let context = tautline::Context::new();
    /// let mut router = tautline::Router::builder(&context).bind("inproc://answers-to")?;
    /// let mut dealer = tautline::Dealer::builder(&context).connect("inproc://answers-to")?;
    /// dealer.send("question")?;
    /// let (client, question) = router.recv_from()?;
    /// router.send_to(&client, "text")?;
    /// router.send_to(&client, vec![0; 100_000])?; // moved, not copied
    /// router.send_multipart_to(&client, ["several", "parts"])?;
    /// router.send_multipart_to(&client, question)?;
    /// # assert_eq!(dealer.recv()?, "text");
    /// # assert_eq!(dealer.recv()?.len(), 100_000);
    /// # assert_eq!(dealer.recv_multipart()?.len(), 2);
    /// # assert_eq!(dealer.recv()?, "question");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub fn send_to<'a>(&mut self, peer: &'a RoutingId, frame: impl Into<Frame<'a>>) -> Result<()>
    where
        K: Addresses,
    {
        self.send_multipart([Frame::from(peer), frame.into()])
    }

    /// Sends a message of several parts to this peer, as [`send_to`](Self::send_to) does: either
    /// all parts or none. A reply to a REQ begins with an empty part.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there are no parts, and the errors of [`send`](Self::send).
    pub fn send_multipart_to<'a, I>(&mut self, peer: &'a RoutingId, parts: I) -> Result<()>
    where
        K: Addresses,
        I: IntoIterator,
        I::Item: Into<Frame<'a>>,
    {
        let mut parts = parts.into_iter().peekable();
        // The routing id alone would be no message to the peer.
        parts.peek().ok_or_else(Error::no_parts)?;
        self.send_multipart(addressed(peer, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_1_to_255_bytes() {
        for (len, fits) in [(0, false), (1, true), (255, true), (256, false)] {
            assert_eq!(RoutingId::new(vec![1; len]).is_ok(), fits, "{len}");
        }
    }

    #[test]
    fn ids_show_and_compare_as_bytes() {
        let (made_up, chosen) = (RoutingId::new([0, 1, 2, 3, 4]).unwrap(), RoutingId::new("name").unwrap());
        assert!(made_up.is_generated() && !chosen.is_generated() && made_up < chosen);
        assert_eq!(
            format!("{made_up:?} {chosen:?}"),
            r#"RoutingId(b"\x00\x01\x02\x03\x04") RoutingId(b"name")"#
        );
        assert_eq!(
            split_routing_id(Multipart::from(["", "x"])).unwrap_err().to_string(),
            "a routing id has 1 to 255 bytes, not 0"
        );
    }
}
