//! Systems without `/proc`: nothing can be said of the machine.

use std::net::SocketAddr;

use crate::failure::{Failure, Result};

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    pub at: At,
    /// Its process, and the file name of the program.
    pub pid: Option<u32>,
    pub program: Option<String>,
}

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    Tcp(SocketAddr),
    /// A path and the permissions.
    Path(String, u32),
}

/// There is no list of them.
pub fn all() -> Result<Vec<Listener>> {
    Err(Failure::failed("this system does not tell what listens")
        .hint("--source looks through source code instead"))
}
