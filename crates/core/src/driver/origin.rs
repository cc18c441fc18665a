//! Where a stream came from, and what its handshake takes from there.

use super::security::Security;
use super::{Acceptor, Dialer, Site};
use crate::options::Options;
use crate::policy::{Counted, Gate};
use crate::sync::Arc;
use std::borrow::Cow;
use tautline_io::errno;
use tautline_proto::Carrier;

/// Where a stream came from.
pub(super) enum Origin {
    /// A peer came to a bound endpoint. It counts there, if the policy has limits.
    Accepted(Arc<Acceptor>, #[allow(dead_code, reason = "it counts as long as it is there")] Option<Counted>),
    /// We went to the peer.
    Dialed(Arc<Dialer>),
}

impl Origin {
    /// The socket that it belongs to.
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

    /// What the policy says of the peer, if there is one and the peer came to us.
    pub(super) fn gate(&self) -> Option<&Arc<Gate>> {
        match self {
            Origin::Accepted(acceptor, _) => acceptor.gate(),
            Origin::Dialed(_) => None,
        }
    }

    /// What the peer has to show. A server's keys are prepared once for all peers, a client's are
    /// needed once in a connection.
    pub(super) fn security(&self) -> Cow<'_, Security> {
        match self {
            Origin::Accepted(acceptor, _) => Cow::Borrowed(&acceptor.security),
            Origin::Dialed(dialer) => Cow::Owned(Security::new(dialer.options())),
        }
    }

    /// What carries ZMTP on a new stream, unless nothing does.
    pub(super) fn carrier(&self) -> Result<Option<Box<dyn Carrier>>, i32> {
        let carrying = match self {
            Origin::Accepted(acceptor, _) => acceptor.carrying.as_ref(),
            Origin::Dialed(dialer) => dialer.carrying().map_err(|error| error.errno())?,
        };
        let carrier = carrying.map(|make| make()).transpose();
        carrier.map_err(|error| errno::of(&error).unwrap_or(errno::EIO))
    }

    /// Whether lingering here has no limit but, of an accepted stream, its own.
    pub(super) fn lingers_for_ever(&self) -> bool {
        match self {
            Origin::Accepted(..) => true,
            Origin::Dialed(dialer) => dialer.lingers_for_ever(),
        }
    }
}
