//! A `taut` without the bridge, which says so.

use crate::args::Bridge;
use crate::failure::{Failure, Result};

/// Refuses.
pub fn run(_: &Bridge) -> Result<()> {
    Err(Failure::usage("this taut was built without the bridge to NATS")
        .hint("cargo install --path crates/cli --features bridge"))
}
