//! Stub of `taut` without https: encrypted requests fail.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use tokio::net::TcpStream;

use crate::failure::{Failure, Result};

/// Connector that cannot exist.
pub struct Connector(Infallible);

impl Connector {
    /// Always fails.
    pub fn new(_: Option<&Path>) -> Result<Connector> {
        Err(Failure::usage("this taut was built without TLS, so https is not available")
            .hint("cargo install --path crates/cli --features tls"))
    }

    /// Never called.
    pub async fn connect(&self, _: &str, _: TcpStream) -> io::Result<TcpStream> {
        match self.0 {}
    }
}
