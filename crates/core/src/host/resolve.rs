//! Resolution of names (`name://orders`).

use crate::endpoint::Endpoint;
use crate::error::Error;
use tautline_queue::sync::Arc;

/// Knows the endpoints of names, and registers the sockets of this host by name.
pub trait Resolve: Send + Sync {
    /// Checks that `name` is valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not, or if no name can be resolved at all.
    fn check(&self, name: &str) -> Result<(), Error>;

    /// Returns the reason why no name can be resolved, for a valid `name`.
    fn fault(&self, name: &str) -> Option<String>;

    /// Prepares an entry of `name` for the socket of this number.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if sockets cannot be registered, or a system error.
    fn register(self: Arc<Self>, name: &str, socket: u64) -> Result<Box<dyn NameRegistration>, Error>;

    /// Returns the socket of this process that owns the entry of this id.
    fn socket_of(&self, id: &str) -> Option<u64>;

    /// Reports the endpoints of `name` to `follower`, now and after each change, until the follower
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    fn follow(self: Arc<Self>, name: &str, follower: &Arc<dyn NameFollower>) -> Result<(), Error>;

    /// Notes that a follower is gone, or will be in a moment.
    fn notify_follower_dropped(&self);
}

/// An entry of a name for a socket of this process. Dropping it withdraws the entry.
pub trait NameRegistration: Send {
    /// Returns the id of the entry, which is unique across hosts.
    fn id(&self) -> &str;

    /// Returns the endpoint to bind for programs of this host.
    fn ipc(&self) -> String;

    /// Returns the endpoint to bind for other hosts, if there is one.
    fn tcp(&self) -> Option<&str>;

    /// Publishes the entry. `tcp` is the endpoint that was bound for other hosts.
    ///
    /// # Errors
    /// A system error.
    fn publish(&mut self, tcp: Option<&str>) -> Result<(), Error>;
}

/// Receives the endpoints of a name.
pub trait NameFollower: Send + Sync {
    /// Receives the current entries of the name. A higher `version` is a newer answer. Called
    /// without a lock, by the following thread or by a thread of the resolver.
    fn update_entries(self: Arc<Self>, version: u64, entries: &[NameEntry]);

    /// Reports that a resolver has failed, with the reason. `None`: the resolver works again.
    fn report_resolver(&self, resolver: &str, why: Option<&str>);

    /// Reports an endpoint from a resolver that a name must not have. The endpoint is ignored.
    fn report_refused_endpoint(&self, resolver: &str, endpoint: &str);
}

/// One socket, or one server, behind a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameEntry {
    /// Id under which it is registered, if it is a socket of this host.
    pub id: Option<String>,
    /// Endpoints that lead to it, the nearest first.
    pub endpoints: Vec<String>,
}

/// True if a name may have this endpoint: a byte-stream endpoint that can be connected to.
pub fn may_be_named(endpoint: &str) -> bool {
    Endpoint::parse(endpoint)
        .is_ok_and(|endpoint| matches!(endpoint, Endpoint::Stream(..)) && endpoint.check_connect().is_ok())
}
