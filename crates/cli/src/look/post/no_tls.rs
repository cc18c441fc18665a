//! A `taut` without encryption, which says so.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use tokio::net::TcpStream;

use crate::failure::{Failure, Result};

/// There is none.
pub struct Connector(Infallible);

impl Connector {
    /// Refuses.
    pub fn new(_: Option<&Path>) -> Result<Connector> {
        Err(Failure::usage("this taut was built without https")
            .hint("cargo install --path crates/cli --features tls"))
    }

    /// Is not called.
    pub async fn connect(&self, _: &str, _: TcpStream) -> io::Result<TcpStream> {
        match self.0 {}
    }
}
