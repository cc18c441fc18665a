//! Which peers may use which topics.

use std::sync::Arc;

pub use tautline_core::{TopicAction, TopicRequest};

use crate::Socket;
use crate::error::Result;
use crate::kind::HasTopics;

/// Asks about each subscription of a peer (PUB, XPUB), and about each message of one (SUB, XSUB),
/// whether it may. What may not is as if it had not come: the subscription is not set, the message
/// is dropped. It is counted ([`Statistics::topics_refused`]), and the first one of a connection is
/// an event ([`EventKind::TopicRefused`]). The user id is what the [`zap`](crate::zap) handler has
/// said, or the host's policy.
///
/// `may` is called on the thread that uses the socket, in the midst of a call: it should be quick,
/// and a panic in it is a no. Peers over `inproc` are this program, and are not asked about.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::monitor::EventKind;
/// use tautline::zap::{TopicAction, authorize_topics};
/// use tautline::{Context, Pub, Sub};
///
/// // Nobody sees what is internal, whatever it asks for.
/// let context = Context::new();
/// let mut publisher = Pub::new(&context)?;
/// authorize_topics(&mut publisher, |request| {
///     request.action != TopicAction::Subscribe || request.topic.starts_with(b"public/")
/// })?;
/// let events = publisher.monitor()?;
/// let endpoint = publisher.bind("tcp://127.0.0.1:*")?;
/// let subscriber = Sub::builder(&context).subscribe("internal/").subscribe("public/").connect(&endpoint)?;
///
/// publisher.wait_for_subscriptions(1, None)?;
/// let refused = events.into_iter().find(|event| event.kind == EventKind::TopicRefused).unwrap();
/// assert_eq!(refused.cause, "Permission denied: it may not subscribe to `internal/`, by the program");
/// assert_eq!(publisher.statistics()?.topics_refused, 1);
/// # drop(subscriber);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) if the socket is bound or connected, or has one.
///
/// [`Statistics::topics_refused`]: crate::monitor::Statistics::topics_refused
/// [`EventKind::TopicRefused`]: crate::monitor::EventKind::TopicRefused
pub fn authorize_topics<K: HasTopics>(
    socket: &mut Socket<K>,
    may: impl Fn(&TopicRequest<'_>) -> bool + Send + Sync + 'static,
) -> Result<()> {
    Ok(tautline_core::authorize_topics(&mut socket.inner, Arc::new(may))?)
}
