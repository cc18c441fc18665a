//! What the sockets of a host may do.
//!
//! A policy is a file of rules. For each bind, each connect and each peer that comes, the first
//! rule that fits says what happens; without one that fits it is allowed, as without a policy.
//!
//! ```
//! use tautline_policy::{Action, Call, Policy, Question};
//!
//! let policy = Policy::parse("extends = \"loopback\"").unwrap();
//! let mut question = Question::new(Call::Bind, "PUB", "tcp://*:5555");
//! question.address = Some("0.0.0.0".parse().unwrap());
//! let verdict = policy.decide(&question);
//! assert_eq!(verdict.action, Action::Refuse);
//! assert_eq!(verdict.rule.as_deref(), Some("loopback:open-bind"));
//! question.secure = true;
//! assert_eq!(policy.decide(&question).action, Action::Allow);
//! ```
//!
//! A file is read as a whole or not at all: a word that is not known, a value that makes no sense
//! and a rule that can never be asked are faults, each with its line.
//! `docs/reference/policy-file.md` describes the file.

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
pub use fault::Fault;
pub use limits::Limits;
pub use rule::{Action, Call, Question, Verdict};
pub use tls::{TlsTrust, TlsWrap};
pub use topics::{Act, Topics};

use pattern::Pattern;
use rule::Rule;
use std::path::PathBuf;
use topics::Grant;

/// The ready-made policies: name and text.
pub const READY: [(&str, &str); 3] = [
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

/// CURVE or TLS that is put on by the library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrap {
    /// What rules call it.
    pub name: String,
    /// The file with this host's key pair, as `taut keygen` writes it. Clients may do without: they
    /// have a new one each time then.
    pub key: Option<PathBuf>,
    /// Which key a server has, by the endpoint that is connected to.
    servers: Vec<(Pattern, Key)>,
    /// The keys of clients that may connect: a folder of files, or one file. `None`: each may.
    pub clients: Option<PathBuf>,
    /// It is TLS, with these files, and nothing of the above.
    pub tls: Option<TlsWrap>,
}

/// A public key: itself, or a file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// The 40 characters of Z85.
    Text(String),
    /// Where it is.
    File(PathBuf),
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The first fault of the text, with its line.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        parse::policy(text)
    }

    /// A policy that comes with the library.
    pub fn ready(name: &str) -> Option<Self> {
        let (_, text) = READY.iter().find(|(known, _)| *known == name)?;
        // They are tested to have no fault.
        parse::ready(name, text).ok()
    }

    /// What the first rule that fits says.
    pub fn decide(&self, question: &Question<'_>) -> Verdict {
        let found = self.rules.iter().find(|rule| rule.fits(question));
        found.map_or_else(Verdict::default, Rule::verdict)
    }

    /// Whether anything depends on the peers that come.
    pub fn asks_of_peers(&self) -> bool {
        self.rules.iter().any(|rule| rule.is_about(Call::Accept))
    }

    /// Whether any of that depends on the user ids that an authentication handler gives.
    pub fn asks_for_user_ids(&self) -> bool {
        self.rules.iter().any(|rule| !rule.user_ids.is_empty())
    }

    /// The topics that the peer of this question may use, if anything says so.
    pub fn topics(&self, question: &Question<'_>) -> Option<Topics> {
        topics::granted(&self.grants, question)
    }

    /// Whether anything says which topics peers may use.
    pub fn has_topics(&self) -> bool {
        !self.grants.is_empty()
    }

    /// What no rule says: how much there may be of it.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The wrap of this name.
    pub fn wrap(&self, name: &str) -> Option<&Wrap> {
        self.wraps.iter().find(|wrap| wrap.name == name)
    }

    /// All wraps.
    pub fn wraps(&self) -> &[Wrap] {
        &self.wraps
    }
}

impl Wrap {
    /// The key of the server at this endpoint.
    pub fn server(&self, endpoint: &str) -> Option<&Key> {
        self.servers.iter().find(|(pattern, _)| pattern.fits_endpoint(endpoint)).map(|(_, key)| key)
    }

    /// The user id of the server at this endpoint, the name of its file; empty without a file.
    pub fn server_id(&self, endpoint: &str) -> String {
        match self.server(endpoint) {
            Some(Key::File(path)) => keys::owner(path),
            _ => String::new(),
        }
    }

    /// All servers' keys.
    pub fn servers(&self) -> impl Iterator<Item = &Key> {
        self.servers.iter().map(|(_, key)| key)
    }
}
