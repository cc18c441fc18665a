//! A `taut` that makes no certificates, and says so.

use std::path::Path;

use crate::args::Keygen;
use crate::failure::Result;

/// None.
pub fn make(_: &Keygen, _: &Path) -> Result<()> {
    Err(crate::tls::missing("--ca"))
}
