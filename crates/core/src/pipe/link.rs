//! The transport behind the queues of a pipe.

use crate::conn::Connection;
use crate::conn::inproc::InprocEnd;
use crate::sync::Arc;

/// Transport behind the queues.
pub(super) enum Link {
    /// A connection of a byte-stream transport.
    Wire(Arc<Connection>),
    /// Another socket of the same context.
    Inproc(InprocEnd),
}

impl Link {
    /// Returns the connection, unless the link is inproc.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        match self {
            Link::Wire(connection) => Some(connection),
            Link::Inproc(_) => None,
        }
    }

    /// Returns the inproc end, if the link is inproc.
    pub(super) fn inproc_end(&self) -> Option<&InprocEnd> {
        match self {
            Link::Wire(_) => None,
            Link::Inproc(end) => Some(end),
        }
    }

    /// Returns true if there is no session that could send.
    pub(super) fn is_unlinked(&self) -> bool {
        matches!(self, Link::Wire(connection) if !connection.is_linked())
    }

    /// Returns true if the other end of an inproc link is gone.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Link::Inproc(end) if end.is_closed())
    }
}
