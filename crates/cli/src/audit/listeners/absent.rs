//! Stub for systems without `/proc`: the listening sockets cannot be listed.

use super::Listener;
use crate::failure::{Failure, Result};

/// Always fails, because this system has no list of sockets.
pub fn all() -> Result<Vec<Listener>> {
    Err(Failure::failed("this system does not list its listening sockets")
        .hint("use --source to check source code instead"))
}
