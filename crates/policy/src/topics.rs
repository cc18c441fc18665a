//! Topics to which users may publish or subscribe.
//!
//! An entry of `topics` selects sockets (by type, endpoint and program), and grants topics to some
//! of their peers (by user). Once an entry selects a socket, its peers may use only the topics that
//! the matching entries grant together.

use crate::PolicyQuery;
use crate::pattern::Pattern;

/// Use of topics by a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopicUse {
    /// A peer of a PUB or XPUB subscribes.
    Subscribe,
    /// A peer of a SUB or XSUB publishes.
    Publish,
}

impl TopicUse {
    /// Returns the use of topics by peers of such a socket. `None` for types without topics.
    pub fn of_peers_of(socket_type: &str) -> Option<Self> {
        match socket_type {
            "PUB" | "XPUB" => Some(TopicUse::Subscribe),
            "SUB" | "XSUB" => Some(TopicUse::Publish),
            _ => None,
        }
    }
}

/// The topics that a peer may use: all topics that begin with one of several prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedTopics {
    /// The prefixes, in the order of the file.
    pub prefixes: Vec<Vec<u8>>,
    /// Name of the first entry that selects the socket.
    pub rule: String,
}

/// An entry of `topics`. An empty list matches all values.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    pub(crate) name: String,
    pub(crate) types: Vec<String>,
    pub(crate) endpoints: Vec<Pattern>,
    pub(crate) programs: Vec<Pattern>,
    pub(crate) users: Vec<u32>,
    pub(crate) user_ids: Vec<Pattern>,
    pub(crate) subscribe: Option<Vec<Vec<u8>>>,
    pub(crate) publish: Option<Vec<Vec<u8>>>,
}

impl Grant {
    fn prefixes(&self, act: TopicUse) -> Option<&Vec<Vec<u8>>> {
        match act {
            TopicUse::Subscribe => self.subscribe.as_ref(),
            TopicUse::Publish => self.publish.as_ref(),
        }
    }

    /// True if the entry selects the socket.
    fn is_about(&self, question: &PolicyQuery<'_>) -> bool {
        let any = |patterns: &[Pattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        (self.types.is_empty() || self.types.iter().any(|name| name == question.socket_type))
            && (self.endpoints.is_empty()
                || self.endpoints.iter().any(|one| one.matches_endpoint(question.endpoint)))
            && any(&self.programs, question.program)
    }

    /// True if the entry applies to the peer.
    fn is_for(&self, question: &PolicyQuery<'_>) -> bool {
        let user = |user| self.users.contains(&user);
        (self.users.is_empty() || question.user.is_some_and(user))
            && (self.user_ids.is_empty() || self.user_ids.iter().any(|id| id.matches(question.user_id)))
    }
}

/// Returns the topics that the peer of a question may use. `None` means all topics.
pub(crate) fn granted_topics(grants: &[Grant], question: &PolicyQuery<'_>) -> Option<GrantedTopics> {
    let act = TopicUse::of_peers_of(question.socket_type)?;
    let mut about = grants.iter().filter(|grant| grant.prefixes(act).is_some() && grant.is_about(question));
    let first = about.next()?;
    let all = std::iter::once(first).chain(about).filter(|grant| grant.is_for(question));
    let prefixes = all.filter_map(|grant| grant.prefixes(act)).flatten().cloned().collect();
    Some(GrantedTopics { prefixes, rule: first.name.clone() })
}
