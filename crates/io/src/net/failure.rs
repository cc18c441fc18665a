//! A failed attempt to listen or to connect.

use std::io;

use crate::fd::RawFd;

/// Error of a failed attempt to listen or to connect.
#[derive(Debug)]
pub struct Failure {
    /// Error of the system.
    pub error: io::Error,
    /// Number of the descriptor that the attempt used, which is closed by now. `None` if there was
    /// no descriptor.
    pub fd: Option<RawFd>,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure { error, fd: None }
    }
}
