//! Rules that control the sockets of a host.
//!
//! A policy is a file of rules. For each bind, connect and incoming peer, the first matching rule
//! decides. If no rule matches, the action is allowed, as without a policy.
//!
//! ```
//! use tautline_policy::{Action, Call, Policy, PolicyQuery};
//!
//! let policy = Policy::parse("extends = \"loopback\"").unwrap();
//! let mut question = PolicyQuery::new(Call::Bind, "PUB", "tcp://*:5555");
//! question.address = Some("0.0.0.0".parse().unwrap());
//! let verdict = policy.decide(&question);
//! assert_eq!(verdict.action, Action::Refuse);
//! assert_eq!(verdict.rule.as_deref(), Some("loopback:open-bind"));
//! question.secure = true;
//! assert_eq!(policy.decide(&question).action, Action::Allow);
//! ```
//!
//! A file is read as a whole or not at all. An unknown word, an invalid value and a rule that can
//! never apply are faults, each with its line. `docs/reference/policy-file.md` describes the file.

#![forbid(unsafe_code)]

mod address;
mod fault;
pub mod file;
pub mod keys;
mod limits;
mod parse;
mod pattern;
mod rule;
pub mod table;
mod tls;
mod topics;

pub use address::Scope;
pub use fault::FileError;
pub use limits::Limits;
pub use rule::{Action, Call, PolicyDecision, PolicyQuery};
pub use tls::{TlsTrust, TlsWrap};
pub use topics::{GrantedTopics, TopicUse};

use pattern::Pattern;
use rule::Rule;
use std::path::PathBuf;
use topics::Grant;

/// The built-in policies: name and text.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("audit", include_str!("ready/audit.toml")),
    ("loopback", include_str!("ready/loopback.toml")),
    ("strict", include_str!("ready/strict.toml")),
];

/// A policy.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    grants: Vec<Grant>,
    limits: Limits,
    wraps: Vec<Wrap>,
}

/// CURVE or TLS that the library adds to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrap {
    /// Name that rules use.
    pub name: String,
    /// File with this host's key pair, as `taut keygen` writes it. Clients may omit it and then use
    /// a new pair each time.
    pub key: Option<PathBuf>,
    /// Keys of servers, by the endpoint that a socket connects to.
    servers: Vec<(Pattern, Key)>,
    /// Keys of the clients that may connect: a folder of files, or one file. If `None`, all clients
    /// may connect.
    pub clients: Option<PathBuf>,
    /// Files for TLS. If set, the wrap is TLS and the fields above are unused.
    pub tls: Option<TlsWrap>,
}

/// A public key: its text, or a file that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Text of 40 characters in Z85.
    Text(String),
    /// Path of the file.
    File(PathBuf),
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The first fault of the text, with its line.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        parse::policy(text)
    }

    /// Returns a built-in policy.
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        // A test checks that the built-in policies have no fault.
        parse::ready(name, text).ok()
    }

    /// Returns the verdict of the first matching rule.
    pub fn decide(&self, question: &PolicyQuery<'_>) -> PolicyDecision {
        let found = self.rules.iter().find(|rule| rule.matches(question));
        found.map_or_else(PolicyDecision::default, Rule::verdict)
    }

    /// True if a rule depends on incoming peers.
    pub fn depends_on_peers(&self) -> bool {
        self.rules.iter().any(|rule| rule.is_about(Call::Accept))
    }

    /// True if a rule depends on the user ids that an authentication handler returns.
    pub fn depends_on_user_ids(&self) -> bool {
        self.rules.iter().any(|rule| !rule.user_ids.is_empty())
    }

    /// Returns the topics that the peer of this question may use, if an entry restricts them.
    pub fn topics(&self, question: &PolicyQuery<'_>) -> Option<GrantedTopics> {
        topics::granted_topics(&self.grants, question)
    }

    /// True if an entry restricts the topics of peers.
    pub fn has_topics(&self) -> bool {
        !self.grants.is_empty()
    }

    /// Returns the limits, which do not depend on rules.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the wrap of this name.
    pub fn wrap(&self, name: &str) -> Option<&Wrap> {
        self.wraps.iter().find(|wrap| wrap.name == name)
    }

    /// Returns all wraps.
    pub fn wraps(&self) -> &[Wrap] {
        &self.wraps
    }
}

impl Wrap {
    /// Returns the key of the server at this endpoint.
    pub fn server(&self, endpoint: &str) -> Option<&Key> {
        self.servers.iter().find(|(pattern, _)| pattern.matches_endpoint(endpoint)).map(|(_, key)| key)
    }

    /// Returns the user id of the server at this endpoint, which is the name of its file. Empty if
    /// there is no file.
    pub fn server_id(&self, endpoint: &str) -> String {
        match self.server(endpoint) {
            Some(Key::File(path)) => keys::user_id_of(path),
            _ => String::new(),
        }
    }

    /// Returns the keys of all servers.
    pub fn servers(&self) -> impl Iterator<Item = &Key> {
        self.servers.iter().map(|(_, key)| key)
    }
}
