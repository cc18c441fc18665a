//! `taut names`.

use std::path::PathBuf;

use clap::Args;

/// names
#[derive(Debug, Args)]
pub struct Names {
    /// The names file: docs/use/names.md describes it
    #[arg(long, value_name = "FILE", env = "TAUT_NAMES")]
    pub file: PathBuf,
    /// Tell other hosts through NATS what is bound here, and this one what is bound there
    #[arg(long, conflicts_with = "names")]
    pub serve: bool,
    /// The names to show; without any, all that the file and its folder have
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}
