//! Origin of a stream, and the settings that its handshake takes from there.

use super::security::Security;
use super::{Acceptor, Dialer, Site};
use crate::host::{AdmittedPeer, Gate};
use crate::options::Options;
use std::borrow::Cow;
use tautline_io::errno;
use tautline_proto::Carrier;
use tautline_queue::sync::Arc;

/// Origin of a stream.
pub(super) enum Origin {
    /// A peer connected to a bound endpoint. The stream counts there, if the policy has limits.
    Accepted(
        Arc<Acceptor>,
        #[allow(dead_code, reason = "it counts as long as it is there")] Option<AdmittedPeer>,
    ),
    /// We connected to the peer.
    Dialed(Arc<Dialer>),
}

impl Origin {
    /// The site of the socket that owns the stream.
    pub(super) fn site(&self) -> &Arc<Site> {
        match self {
            Origin::Accepted(acceptor, _) => acceptor.site(),
            Origin::Dialed(dialer) => dialer.site(),
        }
    }

    /// The options in force when the endpoint was bound or connected.
    pub(super) fn options(&self) -> &Arc<Options> {
        match self {
            Origin::Accepted(acceptor, _) => acceptor.options(),
            Origin::Dialed(dialer) => dialer.options(),
        }
    }

    /// The policy's rules for the peer, if there is a policy and the peer connected to us.
    pub(super) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        match self {
            Origin::Accepted(acceptor, _) => acceptor.gate(),
            Origin::Dialed(_) => None,
        }
    }

    /// The credentials that the peer has to show. A server prepares its keys once for all peers. A
    /// client needs its keys once per connection.
    pub(super) fn security(&self) -> Cow<'_, Security> {
        match self {
            Origin::Accepted(acceptor, _) => Cow::Borrowed(&acceptor.security),
            Origin::Dialed(dialer) => Cow::Owned(Security::new(dialer.options())),
        }
    }

    /// Makes the carrier of ZMTP for a new stream. `None` for plain ZMTP.
    pub(super) fn carrier(&self) -> Result<Option<Box<dyn Carrier>>, i32> {
        let carrying = match self {
            Origin::Accepted(acceptor, _) => acceptor.carrying.as_ref(),
            Origin::Dialed(dialer) => dialer.carrying().map_err(|error| error.errno())?,
        };
        let carrier = carrying.map(|make| make()).transpose();
        carrier.map_err(|error| errno::of(&error).unwrap_or(errno::EIO))
    }

    /// True if lingering has no time limit here. An accepted stream may still have its own limit.
    pub(super) fn lingers_for_ever(&self) -> bool {
        match self {
            Origin::Accepted(..) => true,
            Origin::Dialed(dialer) => dialer.lingers_for_ever(),
        }
    }
}
