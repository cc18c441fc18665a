//! One rule: its conditions and its action.

use std::net::IpAddr;

use crate::address::{Network, Scope};
use crate::pattern::Pattern;

/// Operation that a policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// A socket binds.
    Bind,
    /// A socket connects.
    Connect,
    /// A peer has connected to a bound socket and completed its handshake.
    Accept,
}

/// Action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Action {
    /// The operation proceeds.
    #[default]
    Allow,
    /// The operation proceeds, and an event reports it.
    Warn,
    /// The operation is refused: a call fails with EACCES, and a peer's connection is closed.
    Refuse,
    /// The operation proceeds with CURVE or TLS, unless the program itself has asked for such
    /// protection.
    Wrap,
}

/// A question to a policy. [`PolicyQuery::new`] sets the unknown fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyQuery<'a> {
    /// Operation to decide.
    pub call: Call,
    /// Type of the socket, for example `PUB`.
    pub socket_type: &'a str,
    /// Endpoint as the program gave it. For a peer, the endpoint to which it connected.
    pub endpoint: &'a str,
    /// Address to bind or connect to, or address of the peer, if it exists and is known.
    pub address: Option<IpAddr>,
    /// File name of the program.
    pub program: &'a str,
    /// `NULL`, `PLAIN`, `CURVE` or `GSSAPI`.
    pub mechanism: &'a str,
    /// True if CURVE or TLS protects the connection.
    pub secure: bool,
    /// ipc: true if no other user can reach the socket, or if the peer belongs to this user.
    pub private: bool,
    /// ipc: user of the peer.
    pub user: Option<u32>,
    /// User id that an authentication handler has given the peer.
    pub user_id: &'a str,
}

impl<'a> PolicyQuery<'a> {
    /// Creates a question about a call. All other fields are unknown.
    pub fn new(call: Call, socket_type: &'a str, endpoint: &'a str) -> Self {
        PolicyQuery {
            call,
            socket_type,
            endpoint,
            address: None,
            program: "",
            mechanism: "NULL",
            secure: false,
            private: false,
            user: None,
            user_id: "",
        }
    }
}

/// Decision of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PolicyDecision {
    /// Action to take.
    pub action: Action,
    /// Rule that decided. `None` if no rule matches.
    pub rule: Option<String>,
    /// [`Action::Wrap`]: name of the wrap.
    pub wrap: Option<String>,
    /// ipc: permissions of the socket's file when it is bound.
    pub mode: Option<u32>,
}

/// A rule of a policy. An empty list matches all values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) types: Vec<String>,
    pub(crate) endpoints: Vec<Pattern>,
    pub(crate) addresses: Vec<Network>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) programs: Vec<Pattern>,
    pub(crate) mechanisms: Vec<String>,
    pub(crate) users: Vec<u32>,
    pub(crate) user_ids: Vec<Pattern>,
    pub(crate) secure: Option<bool>,
    pub(crate) private: Option<bool>,
    pub(crate) action: Action,
    pub(crate) wrap: Option<String>,
    pub(crate) mode: Option<u32>,
}

impl Rule {
    pub(crate) fn is_about(&self, call: Call) -> bool {
        self.calls.is_empty() || self.calls.contains(&call)
    }

    pub(crate) fn matches(&self, question: &PolicyQuery<'_>) -> bool {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        let has = |names: &[String], text: &str| names.is_empty() || names.iter().any(|name| name == text);
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let address = |address: IpAddr| self.addresses.iter().any(|network| network.has(address));
        self.is_about(question.call)
            && has(&self.types, question.socket_type)
            && (self.endpoints.is_empty()
                || self.endpoints.iter().any(|one| one.matches_endpoint(question.endpoint)))
            && (self.addresses.is_empty() || question.address.is_some_and(address))
            && (self.scopes.is_empty() || self.scopes.contains(&Scope::of(question.address)))
            && any(&self.programs, question.program)
            && has(&self.mechanisms, question.mechanism)
            && (self.users.is_empty() || question.user.is_some_and(|user| self.users.contains(&user)))
            && any(&self.user_ids, question.user_id)
            && is(self.secure, question.secure)
            && is(self.private, question.private)
    }

    pub(crate) fn verdict(&self) -> PolicyDecision {
        PolicyDecision {
            action: self.action,
            rule: Some(self.name.clone()),
            wrap: self.wrap.clone(),
            mode: self.mode,
        }
    }
}
