//! Which peers may use which topics: by the policy of the host, and by the program.

use super::Socket;
use crate::error::Error;
use crate::policy::{Guard, TopicAuthorizer, TopicKeeper};
use crate::sync::Arc;
use tautline_policy::Act;

/// Asks `authorizer` about each subscription of a peer (PUB, XPUB), or each message of one (SUB,
/// XSUB). What it does not let pass is as if it had not come: a subscription is not set, a message
/// is dropped. Both are counted, and the first one of each connection is an event. It is called on
/// the thread that uses the socket, in the midst of a call. Peers over inproc are the program
/// itself, and not asked about.
///
/// # Errors
/// [`Error::NotSupported`] for the types without topics; [`Error::Invalid`] if the socket was bound
/// or connected before, or has one.
pub fn authorize_topics(
    socket: &mut Socket,
    authorizer: std::sync::Arc<TopicAuthorizer>,
) -> Result<(), Error> {
    if Act::of_peers_of(socket.socket_type.name()).is_none() {
        return Err(Error::NotSupported);
    }
    if socket.pattern.keeps_topics || !socket.endpoints.is_empty() {
        return Err(Error::Invalid);
    }
    keep(socket, Some(authorizer));
    Ok(())
}

/// The policy may have something to say about the topics of peers.
pub(super) fn keep_by_policy(socket: &mut Socket, guard: &Guard) {
    let has_topics = Act::of_peers_of(socket.socket_type.name()).is_some();
    if has_topics && !socket.pattern.keeps_topics && guard.may_know_topics() {
        keep(socket, None);
    }
}

fn keep(socket: &mut Socket, authorizer: Option<std::sync::Arc<TopicAuthorizer>>) {
    let keeper = TopicKeeper {
        tap: socket.tap.clone(),
        guard: socket.context.guard().cloned(),
        socket_type: socket.socket_type,
        authorizer,
    };
    socket.pattern.keep_topics(Arc::new(keeper));
}
