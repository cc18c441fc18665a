//! Decodes one event in version 3 of the engine's format: number, count of values, values, both
//! endpoints, routing id, address and user id of the peer, and the cause as text. A failed
//! handshake adds the mechanism, the key or user name, and the handler's reason.

use std::fmt;
use std::time::Duration;

use tautline_core::TlsFault;

use crate::curve::PublicKey;
use crate::message::{Message, Multipart};

/// Event of a connection or an endpoint.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::monitor::EventKind;
/// use tautline::{Context, Pull};
///
/// let mut pull = Pull::new(&Context::new())?;
/// let mut events = pull.monitor()?;
/// let endpoint = pull.bind("tcp://127.0.0.1:*")?;
/// let event = events.recv()?;
/// assert_eq!((event.kind, event.local, event.remote.as_str()), (EventKind::Listening, endpoint, ""));
/// assert_eq!(events.try_recv().unwrap_err(), tautline::Error::WouldBlock);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Event {
    /// Kind of the event.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: EventKind,
    /// Local endpoint; empty if it is not known (yet). In [`EventKind::BindFailed`], it has no
    /// transport prefix.
    pub local: String,
    /// Remote endpoint; empty if it does not exist or is not known.
    pub remote: String,
    /// Credentials that the peer presented, in [`EventKind::HandshakeFailed`] at a PLAIN or CURVE
    /// server; `None` if the handshake failed earlier.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub claim: Option<Claim>,
    /// Reason from the [`zap`](crate::zap) handler, in [`HandshakeError::Refused`] at the socket of
    /// the handler. It is not sent to the peer.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub reason: String,
    /// The peer's own routing id up to the first zero, in [`EventKind::HandshakeSucceeded`] and
    /// [`EventKind::Disconnected`]; empty if it has no routing id.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub routing_id: Vec<u8>,
    /// In the same events: the peer's address as in its messages.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub host: String,
    /// In the same events: the user id that the [`zap`](crate::zap) handler assigned.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub user_id: String,
    /// Cause as text, in [`EventKind::Disconnected`] and all failures. If a rule or limit of the
    /// host's policy is the cause, it follows a colon.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub cause: String,
}

/// Credentials that a peer presented. A password is never included.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::curve::KeyPair;
/// use tautline::monitor::Claim;
/// use tautline::zap::AllowList;
/// use tautline::{Context, Pull, Push};
///
/// let (server, client) = (KeyPair::generate()?, KeyPair::generate()?);
/// let context = Context::new();
/// context.authenticate(AllowList::new())?;
/// let mut sink = Pull::builder(&context).curve_server(&server.secret).build()?;
/// let mut events = sink.monitor()?;
/// let endpoint = sink.bind("tcp://127.0.0.1:*")?;
/// let source = Push::builder(&context).curve_client(&server.public, &client).connect(&endpoint)?;
///
/// let refused = events.find(|event| event.claim.is_some()).unwrap();
/// assert_eq!(refused.claim, Some(Claim::Curve { public_key: client.public }));
/// assert_eq!(refused.reason, "unknown key");
/// # drop(source);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "mechanism", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Claim {
    /// A user name (PLAIN), which is not verified: the password would have to prove it.
    Plain {
        /// The name; invalid UTF-8 is replaced.
        username: String,
    },
    /// A public key whose secret key the peer proved to have (CURVE).
    Curve {
        /// The key.
        public_key: PublicKey,
    },
}

/// Kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "crate::serde::EventKindForm"))]
#[cfg_attr(feature = "serde", serde(from = "crate::serde::EventKindForm"))]
#[non_exhaustive]
pub enum EventKind {
    /// A connection was established; the handshake follows.
    Connected,
    /// A connection attempt is in progress.
    ConnectDelayed,
    /// A connection attempt failed; the next one follows after a delay.
    ConnectRetried {
        /// Delay before the next attempt.
        after: Duration,
    },
    /// An endpoint was bound.
    Listening,
    /// An endpoint could not be bound, with the errno.
    BindFailed(i32),
    /// A peer has connected; the handshake follows.
    Accepted,
    /// A peer could not be accepted, with the errno.
    AcceptFailed(i32),
    /// This side closed a connection, a bound endpoint, or a connection attempt.
    Closed,
    /// Closing failed, with the errno.
    CloseFailed(i32),
    /// An established connection was lost.
    Disconnected,
    /// The handshake is complete: messages can flow.
    HandshakeSucceeded,
    /// We refused the peer, the peer refused us, or the peer speaks another protocol.
    HandshakeFailed(HandshakeError),
    /// A peer subscribed or published to a topic without permission. Reported for the first such
    /// topic of a connection. The cause names the topic and the rule.
    TopicRefused,
    /// A connected name (`name://`) now stands for other endpoints, or its resolver answers again.
    /// The cause has the details.
    NameChanged,
    /// The resolver of a connected name fails, with the errno. Known peers stay connected. The
    /// cause has the details.
    ResolverFailed(i32),
    /// Last event: the socket was closed, or has another monitor.
    Stopped,
    /// An event that this version of the library does not know.
    Other {
        /// Number of the event in `zmq.h`.
        number: u64,
        /// Values of the event.
        values: Vec<u64>,
    },
}

/// Reason why a handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "crate::serde::HandshakeErrorForm"))]
#[cfg_attr(feature = "serde", serde(from = "crate::serde::HandshakeErrorForm"))]
#[non_exhaustive]
pub enum HandshakeError {
    /// The connection was lost or timed out, with the errno.
    Io(i32),
    /// The peer uses another protocol, another mechanism or a wrong key; or the reply of the ZAP
    /// handler is malformed. The number is a ZMQ_PROTOCOL_ERROR of `zmq.h`.
    Protocol(u32),
    /// The ZAP handler refused: 300 (temporary), 400 (refused), 500 (internal error).
    Refused(u32),
}

impl Event {
    /// Decodes the parts of an event message; `None` if it is malformed.
    pub(crate) fn read(parts: &Multipart) -> Option<Event> {
        let number = |part: &Message| Some(u64::from_ne_bytes(part.as_bytes().try_into().ok()?));
        let text = |part: &Message| part.to_string_lossy().into_owned();
        let (event, count) = (number(parts.first()?)?, number(parts.get(1)?)?);
        let rest = parts.get(2..)?;
        let (values, ends) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        let values: Vec<u64> = values.iter().map(number).collect::<Option<_>>()?;
        let [local, remote, routing_id, host, user_id, cause, detail @ ..] = ends else { return None };
        let (claim, reason) = match detail {
            [] => (None, String::new()),
            [mechanism, name, reason] => (Claim::read(mechanism, name), text(reason)),
            _ => return None,
        };
        Some(Event {
            kind: EventKind::new(event, values),
            local: text(local),
            remote: text(remote),
            claim,
            reason,
            routing_id: routing_id.as_bytes().to_vec(),
            host: text(host),
            user_id: text(user_id),
            cause: text(cause),
        })
    }
}

impl Claim {
    fn read(mechanism: &Message, name: &Message) -> Option<Claim> {
        match mechanism.as_bytes() {
            b"PLAIN" => Some(Claim::Plain { username: name.to_string_lossy().into_owned() }),
            b"CURVE" => Some(Claim::Curve { public_key: <[u8; 32]>::try_from(name.as_bytes()).ok()?.into() }),
            _ => None,
        }
    }
}

impl EventKind {
    pub(crate) fn new(number: u64, values: Vec<u64>) -> EventKind {
        let value = values.first().copied().unwrap_or(0);
        let errno = value as i32;
        match number {
            0x1 => EventKind::Connected,
            0x2 => EventKind::ConnectDelayed,
            0x4 => EventKind::ConnectRetried { after: Duration::from_millis(value) },
            0x8 => EventKind::Listening,
            0x10 => EventKind::BindFailed(errno),
            0x20 => EventKind::Accepted,
            0x40 => EventKind::AcceptFailed(errno),
            0x80 => EventKind::Closed,
            0x100 => EventKind::CloseFailed(errno),
            0x200 => EventKind::Disconnected,
            0x400 => EventKind::Stopped,
            0x800 => EventKind::HandshakeFailed(HandshakeError::Io(errno)),
            0x1000 => EventKind::HandshakeSucceeded,
            0x2000 => EventKind::HandshakeFailed(HandshakeError::Protocol(value as u32)),
            0x4000 => EventKind::HandshakeFailed(HandshakeError::Refused(value as u32)),
            0x1000_0000 => EventKind::TopicRefused,
            0x2000_0000 if value == 0 => EventKind::NameChanged,
            0x2000_0000 => EventKind::ResolverFailed(value as i32),
            _ => EventKind::Other { number, values },
        }
    }

    /// True if only the cause says which object is concerned.
    fn has_cause(&self) -> bool {
        matches!(
            self,
            EventKind::Disconnected
                | EventKind::TopicRefused
                | EventKind::NameChanged
                | EventKind::ResolverFailed(_)
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.kind.has_cause() && !self.cause.is_empty() {
            write!(f, ": {}", self.cause)?;
        }
        if let Some(claim) = &self.claim {
            write!(f, ", {claim}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ", {:?}", self.reason)?;
        }
        match (self.local.as_str(), self.remote.as_str()) {
            ("", "") => Ok(()),
            (one, "") | ("", one) => write!(f, " ({one})"),
            (local, remote) => write!(f, " ({local} - {remote})"),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Plain { username } => write!(f, "user name {username:?}"),
            Claim::Curve { public_key } => write!(f, "key {public_key}"),
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, errno) = match self {
            EventKind::Connected => ("connected", None),
            EventKind::ConnectDelayed => ("connecting", None),
            EventKind::ConnectRetried { after } => return write!(f, "reconnecting after {after:?}"),
            EventKind::Listening => ("listening", None),
            EventKind::BindFailed(errno) => ("bind failed", Some(*errno)),
            EventKind::Accepted => ("accepted", None),
            EventKind::AcceptFailed(errno) => ("accept failed", Some(*errno)),
            EventKind::Closed => ("closed", None),
            EventKind::CloseFailed(errno) => ("close failed", Some(*errno)),
            EventKind::Disconnected => ("disconnected", None),
            EventKind::HandshakeSucceeded => ("handshake succeeded", None),
            EventKind::HandshakeFailed(reason) => return write!(f, "handshake failed: {reason}"),
            EventKind::TopicRefused => ("topic refused", None),
            EventKind::NameChanged => ("name changed", None),
            EventKind::ResolverFailed(errno) => ("resolver failed", Some(*errno)),
            EventKind::Stopped => ("monitoring stopped", None),
            EventKind::Other { number, values } => return write!(f, "event {number:#x} {values:?}"),
        };
        f.write_str(text)?;
        errno.map_or(Ok(()), |errno| write!(f, ": {}", tautline_core::system_error(errno)))
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Io(errno) => tautline_core::system_error(*errno).fmt(f),
            HandshakeError::Protocol(0x1000_0003) => f.write_str("the CURVE key exchange failed"),
            HandshakeError::Protocol(0x1000_0018) => f.write_str("the peer's metadata is invalid"),
            HandshakeError::Protocol(0x1100_0001) => f.write_str("a CURVE key is wrong"),
            HandshakeError::Protocol(0x1100_0002) => f.write_str("the peer uses another security mechanism"),
            HandshakeError::Protocol(code @ 0x2000_0000..0x3000_0000) => {
                write!(f, "the authentication handler sent an invalid reply ({code:#x})")
            }
            HandshakeError::Protocol(code) => match TlsFault::from_code(*code) {
                Some(fault) => fault.fmt(f),
                None => write!(f, "the peer violated ZMTP ({code:#x})"),
            },
            HandshakeError::Refused(300) => f.write_str("refused temporarily"),
            HandshakeError::Refused(400) => f.write_str("refused"),
            HandshakeError::Refused(status) => write!(f, "the authentication handler failed ({status})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(numbers: &[u64], texts: &[&str]) -> Multipart {
        let numbers = numbers.iter().map(|number| Message::from(&number.to_ne_bytes()));
        numbers.chain(texts.iter().map(|text| Message::from(*text))).collect()
    }

    #[test]
    fn events_are_read() {
        let event =
            Event::read(&parts(&[0x4, 1, 250], &["", "tcp://127.0.0.1:1", "", "", "", "in 250 ms"])).unwrap();
        assert_eq!(event.kind, EventKind::ConnectRetried { after: Duration::from_millis(250) });
        assert_eq!(event.to_string(), "reconnecting after 250ms (tcp://127.0.0.1:1)");
        let event = Event::read(&parts(&[0x10000, 2, 5, 6], &["a", "b", "", "", "", ""])).unwrap();
        assert_eq!(event.kind, EventKind::Other { number: 0x10000, values: vec![5, 6] });
        assert_eq!(event.to_string(), "event 0x10000 [5, 6] (a - b)");
        let refused = Event::read(&parts(&[0x4000, 1, 400], &["", "", "", "", "", "refused"])).unwrap();
        assert_eq!(refused.kind, EventKind::HandshakeFailed(HandshakeError::Refused(400)));
        assert_eq!((refused.claim, refused.reason.as_str()), (None, ""));
    }

    #[test]
    fn the_peer_and_the_cause_are_read() {
        let texts = ["a", "b", "joe", "10.0.0.7", "user", "the peer closed the connection"];
        let event = Event::read(&parts(&[0x200, 1, 9], &texts)).unwrap();
        assert_eq!((&event.routing_id[..], &*event.host, &*event.user_id), (&b"joe"[..], "10.0.0.7", "user"));
        assert_eq!(event.to_string(), "disconnected: the peer closed the connection (a - b)");
    }

    #[test]
    fn claim_of_refused_peer_is_read() {
        let read = |[local, remote, mechanism, name, reason]: [&str; 5]| {
            let texts = [local, remote, "", "", "", "refused", mechanism, name, reason];
            Event::read(&parts(&[0x4000, 1, 400], &texts)).unwrap()
        };
        let event = read(["a", "b", "PLAIN", "joe\n", "not today"]);
        assert_eq!(event.claim, Some(Claim::Plain { username: "joe\n".to_owned() }));
        assert_eq!(event.to_string(), r#"handshake failed: refused, user name "joe\n", "not today" (a - b)"#);
        let event = read(["", "", "CURVE", "12345678901234567890123456789012", ""]);
        let key = PublicKey::from(*b"12345678901234567890123456789012");
        assert_eq!(
            (event.claim.as_ref(), event.reason.as_str()),
            (Some(&Claim::Curve { public_key: key }), "")
        );
        assert_eq!(event.to_string(), format!("handshake failed: refused, key {key}"));
        for (mechanism, name) in [("NULL", ""), ("CURVE", "short"), ("GSSAPI", "joe")] {
            let event = read(["", "", mechanism, name, "no"]);
            assert_eq!((event.claim, event.reason.as_str()), (None, "no"), "{mechanism}");
        }
    }

    #[test]
    fn nonsense_is_none() {
        for (numbers, texts) in [
            (&[][..], &[][..]),
            (&[1], &["x"]),
            (&[1, u64::MAX, 3], &["a", "b", "c", "d", "e", "f"]),
            (&[1, 0], &["a"]),
            (&[1, 0], &["a", "b", "c", "d", "e"]),
            (&[1, 0], &["a", "b", "c", "d", "e", "f", "g"]),
        ] {
            assert_eq!(Event::read(&parts(numbers, texts)), None, "{numbers:?} {texts:?}");
        }
    }
}
