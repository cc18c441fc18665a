//! Who may use which topics: by the policy of the host, and by the program.

use super::Socket;
use crate::error::Error;
use crate::policy::{TopicAuthorizer, TopicKeeper};
use crate::sync::Arc;
use tautline_policy::Act;

impl Socket {
    /// Asks `authorizer` about each subscription of a peer (PUB, XPUB), or each message of one (SUB,
    /// XSUB). What it does not let pass is as if it had not come: a subscription is not set, a
    /// message is dropped. Both are counted, and the first one of each connection is an event. It
    /// is called on the thread that uses the socket, in the midst of a call. Peers over inproc are
    /// the program itself, and not asked about.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for the types without topics; [`Error::Invalid`] if the socket was
    /// bound or connected before, or has one.
    pub fn authorize_topics(&mut self, authorizer: std::sync::Arc<TopicAuthorizer>) -> Result<(), Error> {
        if Act::of_peers_of(self.socket_type.name()).is_none() {
            return Err(Error::NotSupported);
        }
        if self.keeps_topics || !self.endpoints.is_empty() {
            return Err(Error::Invalid);
        }
        self.keep(Some(authorizer));
        Ok(())
    }

    /// The policy has something to say about the topics of peers, or may have.
    pub(super) fn keep_topics(&mut self, keeps: bool) {
        if keeps && !self.keeps_topics && Act::of_peers_of(self.socket_type.name()).is_some() {
            self.keep(None);
        }
    }

    fn keep(&mut self, authorizer: Option<std::sync::Arc<TopicAuthorizer>>) {
        let keeper = TopicKeeper {
            tap: self.tap.clone(),
            guard: self.context.guard().cloned(),
            socket_type: self.socket_type,
            authorizer,
        };
        self.keeps_topics = true;
        self.pattern.keep_topics(Arc::new(keeper));
    }
}
