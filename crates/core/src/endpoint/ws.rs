//! Addresses of `ws://` and `wss://`: those of `tcp`, with a path behind a slash.

use std::fmt;

use super::Address;
use super::tcp::TcpEndpoint;
use crate::error::Error;

/// A WebSocket to listen for or connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WsEndpoint {
    /// Where.
    pub(crate) tcp: TcpEndpoint,
    /// What is asked for there, with its leading slash: what a URL may have, and so nothing that
    /// would end a line of HTTP.
    pub(crate) path: String,
}

impl Address for WsEndpoint {
    /// Reads `host:port/path`. `Error::Invalid` as for `tcp`, and for a path with characters that
    /// must not stand in a URL.
    fn parse(address: &str) -> Result<WsEndpoint, Error> {
        let (tcp, path) = address.split_at(address.find('/').unwrap_or(address.len()));
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Invalid);
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(WsEndpoint { tcp: TcpEndpoint::parse(tcp)?, path: path.to_owned() })
    }

    fn for_bind(&self) -> Result<(), Error> {
        self.tcp.for_bind()
    }

    fn for_connect(&self) -> Result<(), Error> {
        self.tcp.for_connect()
    }
}

impl fmt::Display for WsEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.tcp, self.path)
    }
}
