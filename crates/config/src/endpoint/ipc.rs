//! Addresses of `ipc://`, zmq_ipc(7): a path, `*` for a path that the library chooses, `@name` for
//! Linux's abstract names.

use std::fmt;

use super::Address;
use super::grammar::SUN_PATH;
use crate::error::Error;

/// A Unix domain socket to bind or connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IpcEndpoint {
    /// `*`: bind chooses a path.
    Wildcard,
    /// A path in the file system, absolute or relative. It fits into the system's address with its
    /// NUL.
    Path(String),
    /// A name outside the file system, without its `@`; never empty.
    Abstract(Vec<u8>),
}

impl Address for IpcEndpoint {
    /// Parses the part after `ipc://`. Returns `Error::NameTooLong` if it does not fit into
    /// `sockaddr_un` with a NUL, and `Error::Invalid` for an empty abstract name. Any text that
    /// starts with `*` is the wildcard.
    fn parse(address: &str) -> Result<IpcEndpoint, Error> {
        if address.starts_with('*') {
            return Ok(IpcEndpoint::Wildcard);
        }
        if address.len() >= SUN_PATH {
            return Err(Error::NameTooLong);
        }
        match address.strip_prefix('@') {
            Some("") => Err(Error::Invalid),
            Some(name) => Ok(IpcEndpoint::Abstract(name.as_bytes().to_vec())),
            None => Ok(IpcEndpoint::Path(address.to_owned())),
        }
    }

    fn check_connect(&self) -> Result<(), Error> {
        if *self == IpcEndpoint::Wildcard { Err(Error::Invalid) } else { Ok(()) }
    }
}

impl fmt::Display for IpcEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IpcEndpoint::Wildcard => f.write_str("*"),
            IpcEndpoint::Path(path) => f.write_str(path),
            IpcEndpoint::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
        }
    }
}
