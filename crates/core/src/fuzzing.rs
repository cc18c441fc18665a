//! What the fuzzer reaches only from inside; see `fuzz/` at the root of the repository. Not part of the engine.

use crate::endpoint::{Endpoint, UdpEndpoint};
use crate::error::Error;
use crate::message::blocks;
use crate::transport;

/// Threads that have not kept a free block of memory yet never will: what is counted is what is in use, and a sanitizer sees what is
/// used after it was freed.
pub fn keep_no_blocks() {
    blocks::keep_nothing();
}

/// Reads an endpoint. Its canonical text, and whether it can be bound and connected to.
pub fn endpoint(text: &str) -> Result<(String, bool, bool), Error> {
    let endpoint = transport::parse(text)?;
    if let Endpoint::Datagram(address) = &endpoint {
        UdpEndpoint::parse(address)?;
    }
    Ok((endpoint.to_string(), endpoint.for_bind().is_ok(), endpoint.for_connect().is_ok()))
}
