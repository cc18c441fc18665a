//! Access control for topics.

use std::sync::Arc;

pub use tautline_core::{TopicAction, TopicRequest};

use crate::Socket;
use crate::error::Result;
use crate::kind::HasTopics;

/// Calls `may` for each subscription of a peer (PUB, XPUB), and for each message from a peer (SUB,
/// XSUB). If it returns false, the subscription is ignored or the message is dropped. The refusal
/// is counted ([`Statistics::topics_refused`]), and the first one of a connection is reported as an
/// event ([`EventKind::TopicRefused`]). The user id comes from the [`zap`](crate::zap) handler or
/// the host's policy.
///
/// `may` runs on the thread that uses the socket, within its call, so it should be fast. A panic
/// counts as false. `inproc` peers belong to this program and are not checked.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::monitor::EventKind;
/// use tautline::zap::{TopicAction, authorize_topics};
/// use tautline::{Context, Pub, Sub};
///
/// // Internal topics reach no subscriber, even one that subscribes to everything.
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
/// Returns [`Error::Invalid`](crate::Error::Invalid) if the socket is bound or connected, or
/// already has such a function.
///
/// [`Statistics::topics_refused`]: crate::monitor::Statistics::topics_refused
/// [`EventKind::TopicRefused`]: crate::monitor::EventKind::TopicRefused
pub fn authorize_topics<K: HasTopics>(
    socket: &mut Socket<K>,
    may: impl Fn(&TopicRequest<'_>) -> bool + Send + Sync + 'static,
) -> Result<()> {
    Ok(tautline_core::authorize_topics(&mut socket.inner, Arc::new(may))?)
}
