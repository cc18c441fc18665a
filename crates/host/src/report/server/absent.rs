//! Systems without a control socket.

use std::io;
use std::path::Path;

use super::Watch;
use tautline_queue::sync::Arc;

/// Control socket that does not exist.
pub(super) enum Server {}

impl Server {
    /// # Errors
    /// `Unsupported`.
    pub(super) fn start(_: &Arc<Watch>, _: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn path(&self) -> &Path {
        match *self {}
    }

    pub(super) fn end(self) {
        match self {}
    }
}
