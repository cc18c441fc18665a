//! Which peers may come in: the context's handler of authentication requests (ZAP, RFC 27) as a
//! Rust type.
//!
//! [`Context::authenticate`](crate::Context::authenticate) takes an [`AllowList`] of keys and
//! passwords, or a closure that judges each [`Request`]. It runs on a thread of its own and is
//! asked once for each connection
//!
//! * of a PLAIN server ([`Builder::plain_server`](crate::Builder::plain_server)), which lets no
//!   peer in without a handler;
//! * of a CURVE server ([`Builder::curve_server`](crate::Builder::curve_server)), which without a
//!   handler lets every peer in that knows its key;
//! * of a socket without either that has a [`zap_domain`](crate::Builder::zap_domain).
//!
//! The messages of a peer then carry what the handler knows of it:
//! [`Message::user_id`](crate::Message::user_id) and further [properties](Verdict::property).
//!
//! ```
//! # fn main() -> tautline::Result<()> {
//! use tautline::zap::{Credentials, Verdict};
//! use tautline::{Context, Rep, Req};
//!
//! let context = Context::new();
//! context.authenticate(|request: &tautline::zap::Request| match request.credentials() {
//!     Credentials::Plain { username, password } if password.is("swordfish") => Verdict::admit(username).property("Role", "admin"),
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

/// Judges peers. Implemented by [`AllowList`] and by closures.
///
/// Called on one thread, for one peer after the other: a handler that takes long holds up the
/// others. A panic refuses the peer.
pub trait Authenticate: Send + 'static {
    /// Whether the peer may come in.
    fn judge(&mut self, request: &Request) -> Verdict;
}

impl<F: FnMut(&Request) -> Verdict + Send + 'static> Authenticate for F {
    fn judge(&mut self, request: &Request) -> Verdict {
        self(request)
    }
}

/// A peer that wants to come in.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Request {
    domain: String,
    address: String,
    routing_id: Message,
    credentials: Credentials,
}

impl Request {
    /// The [`zap_domain`](crate::Builder::zap_domain) of the socket that is asked for; empty if it
    /// has none.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The IP address of the peer; empty if its transport has none.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The routing id of the socket that is asked for, not of the peer; often empty.
    pub fn routing_id(&self) -> &[u8] {
        &self.routing_id
    }

    /// What the peer has shown.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// What a peer has shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum Credentials {
    /// Nothing (NULL).
    Null,
    /// A name and a password (PLAIN). They are readable on the wire.
    Plain {
        /// The name it claims.
        username: String,
        /// What is to prove it.
        password: Password,
    },
    /// That it has the secret key to this one (CURVE).
    Curve(PublicKey),
    /// Something else.
    Other {
        /// The name of the mechanism.
        mechanism: String,
        /// What it has given.
        frames: Vec<Message>,
    },
}

/// A password that a peer has sent. Wiped when it is dropped, not shown by `Debug`.
pub struct Password(Secret<Vec<u8>>);

impl Password {
    /// Whether it is this one, in a time that does not tell where they differ.
    pub fn is(&self, expected: impl AsRef<[u8]>) -> bool {
        self.0 == Secret::new(expected.as_ref().to_vec())
    }

    /// The bytes, to be hashed for example.
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

    /// Let the peer in. Its messages carry `user_id` as the property `User-Id`, up to its first
    /// NUL.
    pub fn admit(user_id: impl Into<String>) -> Self {
        Verdict { user_id: user_id.into(), ..Verdict::new(Status::Admitted, "") }
    }

    /// Do not let it in. The reason is for a reader of the exchange; peers get a number only.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Verdict::new(Status::Refused, reason)
    }

    /// Not now: the peer may try again.
    pub fn later(reason: impl Into<String>) -> Self {
        Verdict::new(Status::Later, reason)
    }

    /// A further property of the peer's messages. Names have 1 to 255 bytes; others are left out.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    #[cfg(feature = "tracing")]
    pub(crate) fn reason(&self) -> &str {
        &self.text
    }

    /// Whether the peer comes in.
    pub fn is_admitted(&self) -> bool {
        self.status == Status::Admitted
    }
}
