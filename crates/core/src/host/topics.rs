//! Topics that peers may use.

use tautline_proto::SocketType;

/// A peer's use of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopicAction {
    /// A peer of PUB or XPUB subscribes to all topics that begin with this one.
    Subscribe,
    /// A peer of SUB or XSUB has published a message whose first part is the topic.
    Publish,
}

impl TopicAction {
    /// Returns the use of topics by peers of such a socket. `None` for types without topics.
    pub(crate) fn of_peers_of(socket_type: SocketType) -> Option<Self> {
        match socket_type.name() {
            "PUB" | "XPUB" => Some(TopicAction::Subscribe),
            "SUB" | "XSUB" => Some(TopicAction::Publish),
            _ => None,
        }
    }
}

/// The topics that a peer may use: all topics that begin with one of several prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTopics {
    /// Prefixes in byte order, without prefixes that begin with another one.
    prefixes: Vec<Vec<u8>>,
    /// First entry that selects the socket.
    rule: String,
}

impl AllowedTopics {
    /// Creates the set of topics that begin with one of `prefixes`. `rule` is the name of the
    /// entry.
    pub fn new(prefixes: impl IntoIterator<Item = Vec<u8>>, rule: &str) -> Self {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for prefix in prefixes {
            if !all.iter().any(|other| prefix.starts_with(other)) {
                all.retain(|other| !other.starts_with(&prefix));
                let place = all.partition_point(|other| *other < prefix);
                all.insert(place, prefix);
            }
        }
        AllowedTopics { prefixes: all, rule: rule.to_owned() }
    }

    /// True if a message whose first part begins with `topic` may pass.
    pub fn allows(&self, topic: &[u8]) -> bool {
        let behind = self.prefixes.partition_point(|prefix| prefix.as_slice() <= topic);
        // The topic can begin only with the last prefix that is not greater than it.
        behind.checked_sub(1).is_some_and(|last| topic.starts_with(&self.prefixes[last]))
    }

    /// Returns the prefixes that begin with `topic`.
    pub fn within<'a>(&'a self, topic: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let first = self.prefixes.partition_point(|prefix| prefix.as_slice() < topic);
        self.prefixes[first..].iter().map(Vec::as_slice).take_while(move |prefix| prefix.starts_with(topic))
    }

    /// Returns the first entry that selects the socket.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(prefixes: &[&str]) -> AllowedTopics {
        AllowedTopics::new(prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()), "x")
    }

    #[test]
    fn a_topic_is_granted_by_any_of_its_beginnings() {
        let some = topics(&["b/", "a", "ab", "a", "c/d/"]);
        assert_eq!(some.within(b"").collect::<Vec<_>>(), [&b"a"[..], b"b/", b"c/d/"]);
        for topic in ["a", "ab", "abc", "az", "b/", "b/x", "c/d/", "c/d/e"] {
            assert!(some.allows(topic.as_bytes()), "{topic}");
        }
        for topic in ["", "b", "c", "c/d", "B", "d", "\u{0}"] {
            assert!(!some.allows(topic.as_bytes()), "{topic}");
        }
        assert_eq!(some.within(b"c").collect::<Vec<_>>(), [b"c/d/"]);
        assert_eq!(some.within(b"c/d/").collect::<Vec<_>>(), [b"c/d/"]);
        assert_eq!(some.within(b"c/d/e").count() + some.within(b"d").count(), 0);
        assert!(topics(&[""]).allows(b"") && topics(&["x", ""]).allows(b"y") && !topics(&[]).allows(b""));
    }
}
