//! Topic permissions of peers: by the policy of the host, and by the program.

use super::Socket;
use super::topic_keeper::{TopicAuthorizer, TopicKeeper};
use crate::context::admission;
use crate::error::Error;
use crate::host::{Admission, TopicAction};
use tautline_queue::sync::Arc;

/// Asks `authorizer` about each subscription of a peer (PUB, XPUB), or about each message of a peer
/// (SUB, XSUB). A refused subscription is not set, and a refused message is dropped. Both are
/// counted, and the first refusal of each connection is an event. The authorizer runs on the thread
/// that uses the socket, during a call. Inproc peers belong to the program itself, so the
/// authorizer is not asked about them.
///
/// # Errors
/// [`Error::NotSupported`] for the types without topics; [`Error::Invalid`] if the socket was bound
/// or connected before, or already has an authorizer.
pub fn authorize_topics(
    socket: &mut Socket,
    authorizer: std::sync::Arc<TopicAuthorizer>,
) -> Result<(), Error> {
    if TopicAction::of_peers_of(socket.socket_type).is_none() {
        return Err(Error::NotSupported);
    }
    if socket.pattern.restricts_topics || !socket.endpoints.is_empty() {
        return Err(Error::Invalid);
    }
    restrict_topics(socket, Some(authorizer));
    Ok(())
}

/// Adds the topic permissions of the policy, if the policy may have some for this socket.
pub(super) fn restrict_by_policy(socket: &mut Socket, admission: &dyn Admission) {
    let has_topics = TopicAction::of_peers_of(socket.socket_type).is_some();
    if has_topics && !socket.pattern.restricts_topics && admission.may_know_topics() {
        restrict_topics(socket, None);
    }
}

fn restrict_topics(socket: &mut Socket, authorizer: Option<std::sync::Arc<TopicAuthorizer>>) {
    let keeper = TopicKeeper {
        tap: socket.events.clone(),
        admission: admission(&socket.context).cloned(),
        socket_type: socket.socket_type,
        authorizer,
    };
    socket.pattern.restrict_topics(Arc::new(keeper));
}
