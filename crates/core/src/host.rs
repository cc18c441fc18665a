//! The services of a host for a context: [`Admission`] is its policy, [`Resolve`] finds the
//! endpoints of names, and [`ContextReport`] shows its state to tools.
//!
//! The crate `tautline-host` implements the traits. The engine calls them at a bind, a connect, a
//! handshake, a subscription or another rare change, and for a message only if a tool wants a copy.
//! [`Host`] has the services that are in force from the start, and the functions that open others.

mod admission;
mod proof;
mod report;
mod resolve;
pub(crate) mod topics;

pub use admission::{
    Admission, AdmittedPeer, BindPermit, BoundEndpoint, CallRequest, ConnectedPeer, Denied, EndpointRules,
    Gate, Permission, PlannedCall, Refusal, Server, SessionLimit,
};
pub(crate) use admission::{Allowed, Call, is_secure};
pub use proof::Proof;
pub use report::{
    ConnectionCounts, ContextReport, DiscardReason, EventReport, Examples, Observed, OpenReport, PeerCounts,
    PeerProbe, PeerReport, PeerState, SocketCounts, SocketProbe, SocketReport, TappedPart, TopicExample,
};
pub use resolve::{NameEntry, NameFollower, NameRegistration, Resolve, may_be_named};
pub use topics::{AllowedTopics, TopicAction};

use crate::error::Error;
use std::path::Path;
use tautline_queue::sync::Arc;

/// The services of a context. The default is empty: everything is allowed, and names are unknown.
#[derive(Clone, Default)]
pub struct Host {
    /// The policy that is in force from the start.
    pub admission: Option<Arc<dyn Admission>>,
    /// Opens another policy.
    pub open_policy: Option<OpenPolicy>,
    /// The resolver of names that is in force from the start.
    pub resolve: Option<Arc<dyn Resolve>>,
    /// Opens another resolver. `None`: the library was built without names.
    pub open_names: Option<OpenNames>,
    /// Starts to report a context.
    pub open_report: Option<OpenReport>,
    /// True if the context is reported from the start.
    pub is_observed: bool,
}

/// Opens a policy by its name or path. Reports a fault of the policy on standard error.
pub type OpenPolicy = fn(&str) -> Result<Arc<dyn Admission>, Error>;

/// Opens a resolver by the path of its file. Reports a fault of the file on standard error.
pub type OpenNames = fn(&Path) -> Result<Arc<dyn Resolve>, Error>;
