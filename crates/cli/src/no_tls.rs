//! Stub of `taut` without TLS: TLS endpoints fail.

use clap::Args;
use tautline_proto::Carrier;

use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result};

/// None.
#[derive(Debug, Default, Clone, Args)]
pub struct TlsArgs {}

/// True if an endpoint uses certificates.
fn is_for(address: &str) -> bool {
    address.starts_with("wss://") || address.starts_with("tls+tcp://")
}

/// Returns no options. Fails if there is a TLS endpoint.
pub fn options(_: &TlsArgs, endpoints: &[Endpoint]) -> Result<Vec<(i32, Vec<u8>)>> {
    let sealed = endpoints.iter().find(|endpoint| is_for(&endpoint.address));
    sealed.map_or(Ok(Vec::new()), |endpoint| Err(missing(&endpoint.address)))
}

/// Always fails, because this build cannot carry ZMTP over TLS.
pub fn carrier(_: &TlsArgs, address: &str, _host: &str) -> Result<Box<dyn Carrier>> {
    Err(missing(address))
}

/// Returns the error for a feature of TLS.
pub fn missing(what: &str) -> Failure {
    Failure::usage(format!("{what}: this taut was built without TLS"))
        .hint("cargo install --path crates/cli --features tls")
}
