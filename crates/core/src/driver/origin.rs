//! Where a stream came from, and what its handshake takes from there.

use super::security::Security;
use super::{Acceptor, Dialer};
use crate::sync::Arc;
use std::borrow::Cow;
use tautline_io::errno;
use tautline_proto::Carrier;

/// Where a stream came from.
pub(super) enum Origin {
    /// A peer came to a bound endpoint.
    Accepted(Arc<Acceptor>),
    /// We went to the peer.
    Dialed(Arc<Dialer>),
}

impl Origin {
    /// What the peer has to show. A server's keys are prepared once for all peers, a client's are needed once in a connection.
    pub(super) fn security(&self) -> Cow<'_, Security> {
        match self {
            Origin::Accepted(acceptor) => Cow::Borrowed(&acceptor.security),
            Origin::Dialed(dialer) => Cow::Owned(Security::new(dialer.options())),
        }
    }

    /// What carries ZMTP on a new stream, unless nothing does.
    pub(super) fn carrier(&self) -> Result<Option<Box<dyn Carrier>>, i32> {
        let carrying = match self {
            Origin::Accepted(acceptor) => &acceptor.carrying,
            Origin::Dialed(dialer) => dialer.carrying.as_ref().map_err(|error| error.errno())?,
        };
        let carrier = carrying.as_ref().map(|make| make()).transpose();
        carrier.map_err(|error| error.raw_os_error().unwrap_or(errno::EIO))
    }

    /// Whether who lingers here has no limit but, of an accepted stream, its own.
    pub(super) fn lingers_for_ever(&self) -> bool {
        match self {
            Origin::Accepted(_) => true,
            Origin::Dialed(dialer) => dialer.lingers_for_ever(),
        }
    }
}
