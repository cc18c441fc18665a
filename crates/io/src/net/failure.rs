//! An attempt to listen or to connect that came to nothing.

use std::io;

use crate::fd::RawFd;

/// Why an attempt to listen or to connect came to nothing.
#[derive(Debug)]
pub struct Failure {
    /// What the system says.
    pub error: io::Error,
    /// The number of the descriptor that it was tried with, which is closed by now; `None` if there
    /// was none.
    pub fd: Option<RawFd>,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure { error, fd: None }
    }
}
