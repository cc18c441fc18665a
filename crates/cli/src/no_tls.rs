//! A `taut` without `wss`, which says so.

use clap::Args;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};

/// None.
#[derive(Debug, Default, Clone, Args)]
pub struct TlsArgs {}

/// No options; an endpoint of `wss` is refused.
pub fn options(_: &TlsArgs, endpoints: &[Endpoint]) -> Result<Vec<(i32, Vec<u8>)>> {
    match endpoints.iter().find(|endpoint| endpoint.address.starts_with("wss://")) {
        None => Ok(Vec::new()),
        Some(endpoint) => {
            Err(Failure::usage(format!("{}: this taut was built without wss", endpoint.address))
                .hint("cargo install --path crates/cli --features wss"))
        }
    }
}
