//! What lies behind the queues of a pipe.

use crate::conn::Connection;
use crate::conn::inproc::InprocEnd;
use crate::sync::Arc;

/// What lies behind the queues.
pub(super) enum Link {
    /// A connection of a byte-stream transport.
    Wire(Arc<Connection>),
    /// Another socket of the same context.
    Inproc(InprocEnd),
}

impl Link {
    /// The connection, if it is one.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        match self {
            Link::Wire(connection) => Some(connection),
            Link::Inproc(_) => None,
        }
    }

    /// The inproc end, if it is one.
    pub(super) fn inproc_end(&self) -> Option<&InprocEnd> {
        match self {
            Link::Wire(_) => None,
            Link::Inproc(end) => Some(end),
        }
    }

    /// Whether there is no session that could send.
    pub(super) fn is_unlinked(&self) -> bool {
        matches!(self, Link::Wire(connection) if !connection.is_linked())
    }

    /// Whether the other end of an inproc link is gone.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Link::Inproc(end) if end.is_closed())
    }
}
