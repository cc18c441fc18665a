//! One rule: what it is about, and what it says.

use std::net::IpAddr;

use crate::address::{Network, Scope};
use crate::pattern::Pattern;

/// What is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// A socket binds.
    Bind,
    /// A socket connects.
    Connect,
    /// A peer has come to a bound socket and shaken hands.
    Accept,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Action {
    /// It happens.
    #[default]
    Allow,
    /// It happens, and is told.
    Warn,
    /// It does not happen: EACCES for a call, the end of the connection for a peer.
    Refuse,
    /// It happens with CURVE or TLS, unless the program has asked for the like itself.
    Wrap,
}

/// What is asked. [`Question::new`] has what is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// What is about to happen.
    pub call: Call,
    /// The type of the socket: `PUB`.
    pub socket_type: &'a str,
    /// The endpoint as the program gave it; of a peer, that which it came to.
    pub endpoint: &'a str,
    /// The address that is bound or connected to, or that of the peer, if it is known and there is
    /// one.
    pub address: Option<IpAddr>,
    /// The file name of the program.
    pub program: &'a str,
    /// `NULL`, `PLAIN`, `CURVE` or `GSSAPI`.
    pub mechanism: &'a str,
    /// CURVE or TLS protects it.
    pub secure: bool,
    /// ipc: no other user can reach it, or the peer is of this user.
    pub private: bool,
    /// ipc: the user of the peer.
    pub user: Option<u32>,
    /// The user id that an authentication handler has given the peer.
    pub user_id: &'a str,
}

impl<'a> Question<'a> {
    /// Of a call, with nothing else known.
    pub fn new(call: Call, socket_type: &'a str, endpoint: &'a str) -> Self {
        Question {
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

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// What happens.
    pub action: Action,
    /// The rule that says so. `None`: no rule fits.
    pub rule: Option<String>,
    /// [`Action::Wrap`]: by which wrap.
    pub wrap: Option<String>,
    /// ipc: the permissions that the socket's file gets when it is bound.
    pub mode: Option<u32>,
}

/// A rule of a policy. A list that is empty fits anything.
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

    pub(crate) fn fits(&self, question: &Question<'_>) -> bool {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(text))
        };
        let has = |names: &[String], text: &str| names.is_empty() || names.iter().any(|name| name == text);
        let is = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let address = |address: IpAddr| self.addresses.iter().any(|network| network.has(address));
        self.is_about(question.call)
            && has(&self.types, question.socket_type)
            && (self.endpoints.is_empty()
                || self.endpoints.iter().any(|one| one.fits_endpoint(question.endpoint)))
            && (self.addresses.is_empty() || question.address.is_some_and(address))
            && (self.scopes.is_empty() || self.scopes.contains(&Scope::of(question.address)))
            && any(&self.programs, question.program)
            && has(&self.mechanisms, question.mechanism)
            && (self.users.is_empty() || question.user.is_some_and(|user| self.users.contains(&user)))
            && any(&self.user_ids, question.user_id)
            && is(self.secure, question.secure)
            && is(self.private, question.private)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Verdict {
            action: self.action,
            rule: Some(self.name.clone()),
            wrap: self.wrap.clone(),
            mode: self.mode,
        }
    }
}
