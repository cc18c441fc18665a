//! A `taut` without the bridge, which says so.

use crate::args::Bridge;
use crate::failure::{Failure, Result};
use tautline_names::Names;

/// Refuses.
pub fn run(_: &Bridge) -> Result<()> {
    Err(without())
}

/// Refuses.
pub fn serve_names(_: &std::path::Path, _: &Names) -> Result<()> {
    Err(without())
}

fn without() -> Failure {
    Failure::usage("this taut was built without the bridge to NATS")
        .hint("cargo install --path crates/cli --features bridge")
}
