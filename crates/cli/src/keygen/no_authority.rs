//! Stub of `taut` without certificates: `--ca` fails.

use std::path::Path;

use crate::args::Keygen;
use crate::failure::Result;

/// Always fails.
pub fn make(_: &Keygen, _: &Path) -> Result<()> {
    Err(crate::tls::missing("--ca"))
}
