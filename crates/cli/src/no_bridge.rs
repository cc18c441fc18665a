//! Stub of `taut` without the bridge: its commands fail.

use crate::args::Bridge;
use crate::failure::{Failure, Result};
use tautline_names::NamesConfig;

/// Always fails.
pub fn run(_: &Bridge) -> Result<()> {
    Err(without())
}

/// Always fails.
pub fn serve_names(_: &std::path::Path, _: &NamesConfig) -> Result<()> {
    Err(without())
}

fn without() -> Failure {
    Failure::usage("this taut was built without the bridge to NATS")
        .hint("cargo install --path crates/cli --features bridge")
}
