//! Access control: the context's handler of authentication requests (ZAP, RFC 27) as a Rust type.
//!
//! [`Context::authenticate`](crate::Context::authenticate) takes an [`AllowList`] of keys and
//! passwords, or a closure that decides about each [`Request`]. The handler runs on its own thread.
//! The handler is called once for each connection
//!
//! * of a PLAIN server ([`Builder::plain_server`](crate::Builder::plain_server)), which refuses
//!   every peer if there is no handler;
//! * of a CURVE server ([`Builder::curve_server`](crate::Builder::curve_server)), which accepts
//!   every peer that knows its key if there is no handler;
//! * of a socket with neither mechanism but a [`zap_domain`](crate::Builder::zap_domain).
//!
//! The messages of an accepted peer carry the data that the handler supplies:
//! [`Message::user_id`](crate::Message::user_id) and further [properties](Verdict::property).
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::zap::{Credentials, Verdict};
//! use tautline::{Context, Rep, Req};
//!
//! let context = Context::new();
//! context.authenticate(|request: &tautline::zap::Request| match request.credentials() {
//!     Credentials::Plain { username, password } if password.matches("swordfish") => Verdict::admit(username).property("Role", "admin"),
//!     _ => Verdict::refuse("wrong password"),
//! })?;
//!
//! let mut service = Rep::builder(&context).plain_server().build()?;
//! let endpoint = service.bind("tcp://127.0.0.1:*")?;
//! let mut client = Req::builder(&context).plain_client("joe", "swordfish").connect(&endpoint)?;
//! client.send("hello")?;
//! let question = service.recv()?;
//! assert_eq!((question.user_id(), question.property("Role")), (Some("joe"), Some("admin")));
//! # Ok(()) }
//! ```

mod allow;
mod serve;
mod topics;

pub use allow::AllowList;
pub(crate) use serve::serve;
pub use topics::{TopicAction, TopicRequest, authorize_topics};

use std::fmt;

use tautline_core::Secret;

use crate::curve::PublicKey;
use crate::message::Message;

/// Decides about peers. [`AllowList`] and closures implement it.
///
/// Called on one thread, for one peer after the other, so a slow handler delays other peers. If the
/// handler panics, the peer is refused.
pub trait Authenticate: Send + 'static {
    /// Decides if the peer may connect.
    fn authenticate(&mut self, request: &Request) -> Verdict;
}

impl<F: FnMut(&Request) -> Verdict + Send + 'static> Authenticate for F {
    fn authenticate(&mut self, request: &Request) -> Verdict {
        self(request)
    }
}

/// Request of a peer to connect.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Request {
    domain: String,
    address: String,
    routing_id: Message,
    credentials: Credentials,
}

impl Request {
    /// Returns the [`zap_domain`](crate::Builder::zap_domain) of the local socket; empty if it has
    /// none.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the IP address of the peer; empty if its transport has none.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the routing id of the local socket, not of the peer; often empty.
    pub fn routing_id(&self) -> &[u8] {
        &self.routing_id
    }

    /// Returns the credentials of the peer.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// Credentials of a peer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Credentials {
    /// No credentials (NULL).
    Null,
    /// A name and a password (PLAIN). Both are readable on the wire.
    Plain {
        /// The claimed name.
        username: String,
        /// The password for this name.
        password: Password,
    },
    /// A public key whose secret key the peer has (CURVE).
    Curve(PublicKey),
    /// Another mechanism.
    Other {
        /// The name of the mechanism.
        mechanism: String,
        /// The frames of the credentials.
        frames: Vec<Message>,
    },
}

/// A password from a peer. It is wiped when it is dropped, and not shown by `Debug`.
pub struct Password(Secret<Vec<u8>>);

impl Password {
    /// True if the password equals `expected`. Comparison time does not reveal where they differ.
    pub fn matches(&self, expected: impl AsRef<[u8]>) -> bool {
        self.0 == Secret::new(expected.as_ref().to_vec())
    }

    /// Returns the bytes, for example to hash them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// The answer to a [`Request`].
///
/// ```
/// use tautline::zap::Verdict;
///
/// assert!(Verdict::admit("alice").property("Role", "admin").is_admitted());
/// assert!(!Verdict::refuse("unknown key").is_admitted());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[must_use = "a peer waits for it"]
pub struct Verdict {
    #[cfg_attr(feature = "serde", serde(rename = "verdict"))]
    status: Status,
    #[cfg_attr(feature = "serde", serde(rename = "reason"))]
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    text: String,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    user_id: String,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    properties: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
enum Status {
    Admitted,
    Later,
    Refused,
    Fault,
}

impl Verdict {
    fn new(status: Status, text: impl Into<String>) -> Self {
        Verdict { status, text: text.into(), user_id: String::new(), properties: Vec::new() }
    }

    /// Accepts the peer. Its messages carry `user_id` as the property `User-Id`, up to its first
    /// NUL.
    pub fn admit(user_id: impl Into<String>) -> Self {
        Verdict { user_id: user_id.into(), ..Verdict::new(Status::Admitted, "") }
    }

    /// Refuses the peer. The reason is for logs on this side; the peer only receives a number.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Verdict::new(Status::Refused, reason)
    }

    /// Refuses the peer temporarily: it may try again.
    pub fn defer(reason: impl Into<String>) -> Self {
        Verdict::new(Status::Later, reason)
    }

    /// Adds a property to the peer's messages. Names must have 1 to 255 bytes; other names are
    /// ignored.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn reason(&self) -> &str {
        &self.text
    }

    /// True if the peer is accepted.
    pub fn is_admitted(&self) -> bool {
        self.status == Status::Admitted
    }
}
