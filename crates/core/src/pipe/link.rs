//! The link of a pipe: a connection or another socket, behind the pipe's two queues.

use crate::conn::Connection;
use crate::conn::inproc::InprocEnd;
use tautline_queue::sync::Arc;

/// The object behind both queues of a pipe.
pub(super) enum Link {
    /// A connection of a byte-stream transport.
    Wire(Arc<Connection>),
    /// Another socket of the same context.
    Inproc(InprocEnd),
}

impl Link {
    /// Returns the connection, or `None` for inproc.
    pub(super) fn connection(&self) -> Option<&Arc<Connection>> {
        match self {
            Link::Wire(connection) => Some(connection),
            Link::Inproc(_) => None,
        }
    }

    /// Returns the inproc end, or `None` for a connection.
    pub(super) fn inproc_end(&self) -> Option<&InprocEnd> {
        match self {
            Link::Wire(_) => None,
            Link::Inproc(end) => Some(end),
        }
    }

    /// True if the link is a connection without a session that could send.
    pub(super) fn is_unlinked(&self) -> bool {
        matches!(self, Link::Wire(connection) if !connection.is_linked())
    }

    /// True if the link is inproc and the other end is gone.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Link::Inproc(end) if end.is_closed())
    }
}
