//! Addresses of `ws://` and `wss://`: those of `tcp`, with a path after a slash.

use std::fmt;

use super::Address;
use super::grammar::split_path;
use super::tcp::TcpEndpoint;
use crate::error::Error;

/// A WebSocket address to bind or connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WsEndpoint {
    /// Host and port.
    pub tcp: TcpEndpoint,
    /// The requested path, with its leading slash. The path contains only URL characters, so it
    /// cannot end a line of HTTP.
    pub path: String,
}

impl Address for WsEndpoint {
    /// Parses `host:port/path`. Returns `Error::Invalid` as for `tcp`, and for a path with
    /// characters that are not allowed in a URL.
    fn parse(address: &str) -> Result<WsEndpoint, Error> {
        let (tcp, path) = split_path(address);
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Invalid);
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(WsEndpoint { tcp: TcpEndpoint::parse(tcp)?, path: path.to_owned() })
    }

    fn check_bind(&self) -> Result<(), Error> {
        self.tcp.check_bind()
    }

    fn check_connect(&self) -> Result<(), Error> {
        self.tcp.check_connect()
    }
}

impl fmt::Display for WsEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.tcp, self.path)
    }
}
