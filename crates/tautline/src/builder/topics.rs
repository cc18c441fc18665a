//! Which peers may use which topics.

use std::sync::Arc;

use super::Builder;
use crate::kind::{HasTopics, Kind};
use crate::zap::TopicRequest;

/// Which peers may use which topics.
///
/// ```
/// # fn main() -> tautline::Result<()> {
/// use tautline::monitor::EventKind;
/// use tautline::zap::TopicAction;
/// use tautline::{Context, Pub, Sub};
///
/// // Nobody sees what is internal, whatever it asks for.
/// let context = Context::new();
/// let mut publisher = Pub::builder(&context)
///     .authorize_topics(|request| {
///         request.action != TopicAction::Subscribe || request.topic.starts_with(b"public/")
///     })
///     .build()?;
/// let events = publisher.monitor()?;
/// let endpoint = publisher.bind("tcp://127.0.0.1:*")?;
/// let subscriber = Sub::builder(&context).subscribe("internal/").subscribe("public/").connect(&endpoint)?;
///
/// publisher.wait_for_subscriptions(1, None)?;
/// for event in events {
///     if let EventKind::TopicRefused = event.kind {
///         assert_eq!(event.cause, "Permission denied: it may not subscribe to `internal/`, by the program");
///         break;
///     }
/// }
/// assert_eq!(publisher.statistics()?.topics_refused, 1);
/// # drop(subscriber);
/// # Ok(()) }
/// ```
impl<K: Kind> Builder<K> {
    /// Asks about each subscription of a peer (PUB, XPUB), and about each message of one (SUB, XSUB),
    /// whether it may. What may not is as if it had not come: the subscription is not set, the
    /// message is dropped. It is counted ([`Statistics::topics_refused`]), and the first one of a
    /// connection is an event ([`EventKind::TopicRefused`]). `user_id` is what the
    /// [`zap`](crate::zap) handler has said, or the host's policy.
    ///
    /// It is called on the thread that uses the socket, in the midst of a call: it should be quick,
    /// and a panic in it is a no. Peers over `inproc` are this program, and are not asked about.
    ///
    /// [`Statistics::topics_refused`]: crate::monitor::Statistics::topics_refused
    /// [`EventKind::TopicRefused`]: crate::monitor::EventKind::TopicRefused
    pub fn authorize_topics(mut self, may: impl Fn(&TopicRequest<'_>) -> bool + Send + Sync + 'static) -> Self
    where
        K: HasTopics,
    {
        self.authorizer = Some(Arc::new(may));
        self
    }
}
